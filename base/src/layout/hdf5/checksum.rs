//! Checksum of the structures of HDF5 (Jenkins' lookup3), as the version 3.0 of the format defines it.

/// Returns the checksum of bytes, with the initial value 0.
pub fn lookup3(data: &[u8]) -> u32 {
    let (blocks, last) = match data.len() % 12 {
        0 => data.split_at(data.len().saturating_sub(12)),
        rest => data.split_at(data.len() - rest),
    };
    let mut state = [0xdead_beef_u32.wrapping_add(data.len() as u32); 3];
    for block in blocks.chunks_exact(12) {
        add(&mut state, block);
        mix(&mut state);
    }
    if !last.is_empty() {
        add(&mut state, last);
        finish(&mut state);
    }
    state[2]
}

/// Adds up to 12 bytes to the state as three little-endian numbers.
fn add(state: &mut [u32; 3], bytes: &[u8]) {
    for (sum, word) in state.iter_mut().zip(bytes.chunks(4)) {
        let mut number = [0; 4];
        number[..word.len()].copy_from_slice(word);
        *sum = sum.wrapping_add(u32::from_le_bytes(number));
    }
}

fn mix(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    for (first, second, third) in [(4, 6, 8), (16, 19, 4)] {
        a = a.wrapping_sub(c) ^ c.rotate_left(first);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(second);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(third);
        b = b.wrapping_add(a);
    }
    *state = [a, b, c];
}

fn finish(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    let step = |to: u32, from: u32, by| (to ^ from).wrapping_sub(from.rotate_left(by));
    c = step(c, b, 14);
    a = step(a, c, 11);
    b = step(b, a, 25);
    c = step(c, b, 16);
    a = step(a, c, 4);
    b = step(b, a, 14);
    c = step(c, b, 24);
    *state = [a, b, c];
}

#[cfg(test)]
mod tests {
    use super::lookup3;

    /// Values that the author of the function publishes.
    #[test]
    fn known_checksums() {
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }
}
