//! Rows of every radix that clFFT supports, forward and back, against the definition in double precision, on the first
//! OpenCL device that is found.

use clfft_sys as sys;
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, Device, get_all_devices};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem};
use opencl3::types::CL_BLOCKING;
use std::f64::consts::TAU;
use std::io::Write;
use std::ptr::{null, null_mut};

const ROWS: usize = 3;

/// The library, set up, with a device.
struct Lab {
    clfft: sys::ClFft,
    context: Context,
    queue: CommandQueue,
}

impl Lab {
    /// None, and why on stderr, where there is no library or no device.
    fn new() -> Option<Lab> {
        let skipped = |why: String| {
            // on a line of its own, whatever the harness has begun
            std::io::stderr().write_all(format!("\nskipped clfft: {why}\n").as_bytes()).unwrap();
        };
        let clfft = match sys::ClFft::open() {
            Ok(clfft) => clfft,
            Err(error) => {
                skipped(error.to_string());
                return None;
            }
        };
        let Some(&id) = get_all_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default().first() else {
            skipped("there is no OpenCL device".into());
            return None;
        };
        let context = Context::from_device(&Device::new(id)).unwrap();
        #[allow(deprecated)]
        let queue = CommandQueue::create_default(&context, 0).unwrap();
        // SAFETY: the first call, of one thread.
        succeeded("setup", unsafe { (clfft.setup)(&sys::SetupData::VERSION) });
        Some(Lab { clfft, context, queue })
    }

    /// `ROWS` rows, transformed forward; and these transformed back.
    fn there_and_back(&self, length: usize, values: &[[f32; 2]]) -> (Vec<[f32; 2]>, Vec<[f32; 2]>) {
        let c = &self.clfft;
        let (mut plan, mut scratch_bytes, mut queue) = (0, 0, self.queue.get());
        let mut results = [vec![[0f32; 2]; values.len()], vec![[0f32; 2]; values.len()]];
        // SAFETY: sizes are those of the vectors; handles live through the calls; one thread.
        unsafe {
            let mut buffer =
                Buffer::<[f32; 2]>::create(&self.context, CL_MEM_READ_WRITE, values.len(), null_mut()).unwrap();
            self.queue.enqueue_write_buffer(&mut buffer, CL_BLOCKING, 0, values, &[]).unwrap();
            let made = (c.create_default_plan)(&mut plan, self.context.get(), sys::ONE_DIMENSION, &length);
            succeeded("plan", made);
            succeeded("precision", (c.set_plan_precision)(plan, sys::SINGLE));
            succeeded("layout", (c.set_layout)(plan, sys::COMPLEX_INTERLEAVED, sys::COMPLEX_INTERLEAVED));
            succeeded("location", (c.set_result_location)(plan, sys::INPLACE));
            succeeded("batch", (c.set_plan_batch_size)(plan, ROWS));
            succeeded("scale", (c.set_plan_scale)(plan, sys::BACKWARD, 0.5));
            succeeded("kernels", (c.bake_plan)(plan, 1, &mut queue, None, null_mut()));
            succeeded("scratch", (c.get_tmp_buf_size)(plan, &mut scratch_bytes));
            let scratch = (scratch_bytes > 0)
                .then(|| Buffer::<u8>::create(&self.context, CL_MEM_READ_WRITE, scratch_bytes, null_mut()).unwrap());
            let scratch = scratch.as_ref().map_or(null_mut(), ClMem::get);
            for (direction, result) in [sys::FORWARD, sys::BACKWARD].into_iter().zip(&mut results) {
                let mut memory = buffer.get_mut();
                let (events, output) = (null_mut(), null_mut());
                let status = (c.enqueue_transform)(
                    plan,
                    direction,
                    1,
                    &mut queue,
                    0,
                    null(),
                    events,
                    &mut memory,
                    output,
                    scratch,
                );
                succeeded("transform", status);
                self.queue.enqueue_read_buffer(&buffer, CL_BLOCKING, 0, result, &[]).unwrap();
            }
            succeeded("destroy", (c.destroy_plan)(&mut plan));
        }
        results.into()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // SAFETY: no plan is left.
        unsafe { (self.clfft.teardown)() };
    }
}

fn succeeded(call: &str, status: sys::Status) {
    assert_eq!(status, sys::SUCCESS, "{call}: {}", sys::status_name(status));
}

/// The transform by its definition.
fn transformed(row: &[[f32; 2]]) -> Vec<[f64; 2]> {
    let length = row.len();
    let frequency = |k: usize| {
        row.iter().enumerate().fold([0.0; 2], |[re, im], (n, value)| {
            let (sin, cos) = (-TAU * (k * n % length) as f64 / length as f64).sin_cos();
            let [x, y] = value.map(f64::from);
            [re + x * cos - y * sin, im + x * sin + y * cos]
        })
    };
    (0..length).map(frequency).collect()
}

/// Values without a pattern, from a linear congruence.
fn noise(count: usize) -> Vec<[f32; 2]> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| [next(), next()]).collect()
}

/// The root mean square of differences over that of what is wanted.
fn error(found: &[[f32; 2]], wanted: &[[f64; 2]]) -> f64 {
    let squares = |values: &mut dyn Iterator<Item = [f64; 2]>| values.map(|[x, y]| x * x + y * y).sum::<f64>();
    let mut differences = found.iter().zip(wanted).map(|(f, w)| [f64::from(f[0]) - w[0], f64::from(f[1]) - w[1]]);
    (squares(&mut differences) / squares(&mut wanted.iter().copied())).sqrt()
}

// one test: clFFT has one global state
#[test]
fn rows_of_every_radix() {
    let Some(lab) = Lab::new() else { return };
    let powers = sys::RADICES.into_iter().flat_map(|radix| [radix, radix * radix]);
    let products = [2 * 3 * 5 * 7, 11 * 13 * 4, 1 << 12, 6000];
    for length in powers.chain(products) {
        let values = noise(length * ROWS);
        let (there, back) = lab.there_and_back(length, &values);
        for row in 0..ROWS {
            let part = row * length..(row + 1) * length;
            let wanted = transformed(&values[part.clone()]);
            let forward = error(&there[part.clone()], &wanted);
            assert!(forward < 1e-6, "length {length}, row {row}: {forward:e}");
            // the scale of this plan is 1/2 in place of 1/length
            let half = length as f64 / 2.0;
            let wanted: Vec<[f64; 2]> = values[part.clone()].iter().map(|v| v.map(|x| f64::from(x) * half)).collect();
            let backward = error(&back[part], &wanted);
            assert!(backward < 1e-6, "length {length} backward, row {row}: {backward:e}");
        }
    }
    // a prime that no kernel is for, and what the status says of it
    let (mut plan, length) = (0, 17);
    // SAFETY: as above.
    let status = unsafe {
        let made = (lab.clfft.create_default_plan)(&mut plan, lab.context.get(), sys::ONE_DIMENSION, &length);
        if made == sys::SUCCESS {
            (lab.clfft.destroy_plan)(&mut plan);
        }
        made
    };
    assert_eq!(sys::status_name(status), "CLFFT_NOTIMPLEMENTED (4097)");
}
