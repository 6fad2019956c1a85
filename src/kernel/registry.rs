//! Derivations from the list of families: their names, their parameters, and dispatch to their code.

/// Defines `Algorithm`, the names of the families, and `Parameters`, the parameters of one of them, from a list of types
/// with their modules. The types implement `Family` and are declared with `parameters!`.
macro_rules! families {
    ($($module:ident::$name:ident),+ $(,)?) => {
        $(pub use $module::$name;)+

        /// The families of back-projection kernels.
        #[derive(
            Clone,
            Copy,
            Debug,
            PartialEq,
            Eq,
            PartialOrd,
            Ord,
            Hash,
            serde::Serialize,
            serde::Deserialize,
            strum::Display,
            strum::EnumString,
            strum::IntoStaticStr,
            strum::VariantArray,
        )]
        #[serde(rename_all = "kebab-case")]
        #[strum(
            serialize_all = "kebab-case",
            parse_err_ty = crate::error::Error,
            parse_err_fn = words::unknown::<Algorithm>
        )]
        pub enum Algorithm {
            $($name),+
        }

        impl Algorithm {
            /// Every family, in the order that messages list them.
            pub const ALL: &'static [Algorithm] = <Algorithm as strum::VariantArray>::VARIANTS;
        }

        impl Word for Algorithm {
            const WHAT: &'static str = "algorithm";
        }

        /// The parameters of a kernel, serialised as the family's table.
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[serde(untagged)]
        pub enum Parameters {
            $($name($name)),+
        }

        impl Parameters {
            /// The name of the family.
            pub fn algorithm(&self) -> Algorithm {
                match self {
                    $(Parameters::$name(_) => Algorithm::$name),+
                }
            }

            /// The family.
            pub fn family(&self) -> &dyn Family {
                match self {
                    $(Parameters::$name(parameters) => parameters),+
                }
            }

            /// The family, mutable.
            pub(crate) fn family_mut(&mut self) -> &mut dyn Family {
                match self {
                    $(Parameters::$name(parameters) => parameters),+
                }
            }

            /// Parameters that tuning starts from if a profile does not offer the family.
            pub fn start(algorithm: Algorithm, mode: Mode) -> Parameters {
                match algorithm {
                    $(Algorithm::$name => Parameters::$name(<$name as Family>::start(mode))),+
                }
            }

            /// Every parameter of a family, in the order in which tuning tries them.
            pub fn declared(algorithm: Algorithm) -> &'static [Parameter] {
                use parameter::Declared;
                use std::sync::LazyLock;
                match algorithm {
                    $(Algorithm::$name => {
                        static LIST: LazyLock<Vec<Parameter>> = LazyLock::new(<$name as Declared>::parameters);
                        &LIST
                    })+
                }
            }

            /// Reads the table of a family.
            ///
            /// # Errors
            /// Anything that the schema rejects: unknown keys and words, values of another type.
            pub fn read<'de, D: serde::Deserializer<'de>>(
                algorithm: Algorithm,
                table: D,
            ) -> Result<Parameters, D::Error> {
                match algorithm {
                    $(Algorithm::$name => <$name as serde::Deserialize>::deserialize(table).map(Parameters::$name)),+
                }
            }
        }

        $(impl From<$name> for Parameters {
            fn from(parameters: $name) -> Parameters {
                Parameters::$name(parameters)
            }
        })+
    };
}
pub(super) use families;
