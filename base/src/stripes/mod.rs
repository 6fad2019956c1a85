//! Stripe removal from sinograms on the host: the methods that sort columns, and what all methods use.

pub mod columns;
pub mod vo;
