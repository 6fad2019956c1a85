//! Fixed arrays, which list the chunks of datasets of limited shape, and extensible arrays, which list those of
//! datasets that may grow along one dimension. Both have an element for every chunk, in the order of their positions.

use super::bytes::{IndexBytes, IndexFile, UNDEFINED, number};
use super::request::{ChunkGrid, ChunkIndex, ListedChunk};

/// Number of bytes of an address.
const ADDRESS: u64 = 8;
/// Number of bytes of a checksum.
const SUM: u64 = 4;
/// Number of bytes at the start of a block: signature, version, kind of elements, and the address of the header of the
/// array.
const PREFIX: u64 = 14;
/// Largest number of bits of the number of elements; the library uses 32.
const BITS: u64 = 32;

/// State of reading elements one after another.
struct ElementWalk<'a, 'b> {
    file: &'a mut IndexFile<'b>,
    /// Number of bytes of a chunk before filters.
    chunk_bytes: u64,
    /// Address of the header of the array.
    header: u64,
    element: ElementForm,
    /// Chunks of the elements.
    grid: ChunkGrid,
    /// Number of the next element.
    next: u64,
    found: Vec<ListedChunk>,
}

/// Form of the elements of an array.
#[derive(Clone, Copy)]
struct ElementForm {
    /// Kind of elements: 0 for addresses only, 1 with sizes and skipped filters.
    kind: u64,
    /// Number of bytes of an element.
    width: u64,
}

impl ElementForm {
    /// Returns a form that is known: an address; with filters also a size of up to 8 bytes and the mask of skipped
    /// filters.
    fn known(kind: u64, width: u64) -> Option<ElementForm> {
        let known = match kind {
            0 => width == ADDRESS,
            1 => (ADDRESS + 5..=ADDRESS + 12).contains(&width),
            _ => false,
        };
        known.then_some(ElementForm { kind, width })
    }
}

/// Returns the chunks in the fixed array whose header is at the address `header`.
pub(super) fn fixed(file: &mut IndexFile, of: &ChunkIndex, header: u64) -> Option<Vec<ListedChunk>> {
    let head = file.read_checked(header, 28)?;
    let (width, bits, elements) = (head.number(6, 1)?, head.number(7, 1)?, head.number(8, 8)?);
    let grid = of.grid()?;
    let own = head.0.starts_with(b"FAHD") && head.number(4, 1)? == 0;
    if !own || elements != grid.all || of.limits.contains(&None) || bits > BITS {
        return None;
    }
    let block = head.number(16, 8)?;
    let element = ElementForm::known(head.number(5, 1)?, width)?;
    let mut walk = ElementWalk { file, chunk_bytes: of.bytes, header, element, grid, next: 0, found: Vec::new() };
    let page = 1 << bits;
    if block == UNDEFINED {
        walk.skip(elements);
    } else if elements <= page {
        walk.block(block, b"FADB", 0, elements)?;
    } else {
        let written = elements.div_ceil(page).div_ceil(8);
        let head = walk.read(block, b"FADB", written + SUM)?;
        let written = head.0.get(PREFIX as usize..(PREFIX + written) as usize)?;
        walk.pages(block.checked_add(head.0.len() as u64)?, elements, page, |page| bit(written, page))?;
    }
    Some(walk.found)
}

/// Returns the chunks in the extensible array whose header is at the address `header`.
pub(super) fn extensible(file: &mut IndexFile, of: &ChunkIndex, header: u64) -> Option<Vec<ListedChunk>> {
    let head = file.read_checked(header, 72)?;
    let slowest = of.limits.iter().position(Option::is_none)?;
    if !head.0.starts_with(b"EAHD") || head.number(4, 1)? != 0 || of.limits[slowest + 1..].contains(&None) {
        return None;
    }
    let form = ExtensibleForm::read(&head)?;
    let (grid, element) = (of.grid()?, ElementForm::known(head.number(5, 1)?, head.number(6, 1)?)?);
    let mut walk = ElementWalk { file, chunk_bytes: of.bytes, header, element, grid, next: 0, found: Vec::new() };
    let supers = form.supers - form.direct_supers;
    let index = head.number(60, 8)?;
    if index == UNDEFINED {
        return Some(walk.found);
    }
    let index = walk.read(index, b"EAIB", form.own * walk.element.width + (form.direct + supers) * ADDRESS + SUM)?;
    let addresses = PREFIX as usize + (form.own * walk.element.width) as usize;
    walk.take(index.0.get(PREFIX as usize..addresses)?)?;
    let mut addresses = (addresses..).step_by(ADDRESS as usize);
    for number in 0..form.supers {
        let (blocks, elements) = (form.blocks(number), form.elements(number));
        if walk.next >= walk.grid.all {
            break;
        }
        if number >= form.direct_supers {
            let at = index.number(addresses.next()?, 8)?;
            form.super_block(&mut walk, at, blocks, elements)?;
            continue;
        }
        for _ in 0..blocks {
            match index.number(addresses.next()?, 8)? {
                UNDEFINED => walk.skip(elements),
                // the pages of larger blocks are marked in super blocks, which the index block bypasses
                at if elements <= form.page => walk.block(at, b"EADB", form.offset, elements)?,
                _ => return None,
            }
        }
    }
    Some(walk.found)
}

/// Parameters of an extensible array: its blocks and their lengths.
///
/// A super block stands for data blocks of one length. The first super blocks are not stored, as the index block
/// contains the addresses of their data blocks.
struct ExtensibleForm {
    /// Number of elements in the index block.
    own: u64,
    /// Number of elements in the smallest data block.
    least: u64,
    /// Number of super blocks.
    supers: u64,
    /// Number of super blocks that are not stored, as the index block has the addresses of their data blocks.
    direct_supers: u64,
    /// Number of data blocks whose addresses are in the index block.
    direct: u64,
    /// Number of elements of a page.
    page: u64,
    /// Number of bytes of the field of a block that gives the number of its first element.
    offset: u64,
}

impl ExtensibleForm {
    fn read(head: &IndexBytes) -> Option<ExtensibleForm> {
        let [bits, own, least, pointers, page] = [7, 8, 9, 10, 11].map(|at| head.number(at, 1).unwrap_or_default());
        if bits > BITS || page > BITS || !least.is_power_of_two() || !pointers.is_power_of_two() {
            return None;
        }
        let supers = (1 + bits).checked_sub(u64::from(least.ilog2()))?;
        let direct_supers = 2 * u64::from(pointers.ilog2());
        let direct = 2 * (pointers - 1);
        let form =
            ExtensibleForm { own, least, supers, direct_supers, direct, page: 1 << page, offset: bits.div_ceil(8) };
        (direct_supers <= supers).then_some(form)
    }

    /// Returns the number of data blocks of a super block.
    fn blocks(&self, number: u64) -> u64 {
        1 << (number / 2)
    }

    /// Returns the number of elements of each data block of a super block.
    fn elements(&self, number: u64) -> u64 {
        self.least << number.div_ceil(2)
    }

    /// Reads the elements of the super block at the address `at`.
    fn super_block(&self, walk: &mut ElementWalk, at: u64, blocks: u64, elements: u64) -> Option<()> {
        if at == UNDEFINED {
            walk.skip(blocks * elements);
            return Some(());
        }
        let pages = if elements > self.page { elements / self.page } else { 0 };
        let written = PREFIX + self.offset..PREFIX + self.offset + blocks * pages.div_ceil(8);
        let head = walk.read(at, b"EASB", written.end - PREFIX + blocks * ADDRESS + SUM)?;
        let addresses = (written.end as usize..).step_by(ADDRESS as usize);
        let written = head.0.get(written.start as usize..written.end as usize)?;
        for (block, address) in (0..blocks).zip(addresses) {
            match head.number(address, 8)? {
                _ if walk.next >= walk.grid.all => break,
                UNDEFINED => walk.skip(elements),
                at if pages == 0 => walk.block(at, b"EADB", self.offset, elements)?,
                at => {
                    let own = walk.read(at, b"EADB", self.offset + SUM)?.0.len() as u64;
                    let start = at.checked_add(own)?;
                    walk.pages(start, elements, self.page, |page| bit(written, block * pages + page))?;
                }
            }
        }
        Some(())
    }
}

impl ElementWalk<'_, '_> {
    /// Reads a block of the array with `rest` bytes after its prefix, the last of which are a checksum.
    fn read(&mut self, at: u64, signature: &[u8; 4], rest: u64) -> Option<IndexBytes> {
        let block = self.file.read_checked(at, PREFIX + rest)?;
        let own =
            block.0.starts_with(signature) && block.number(4, 1)? == 0 && block.number(5, 1)? == self.element.kind;
        (own && block.number(6, 8)? == self.header).then_some(block)
    }

    /// Reads the elements of a block without pages, which begin `before` bytes after its prefix.
    fn block(&mut self, at: u64, signature: &[u8; 4], before: u64, elements: u64) -> Option<()> {
        let length = elements.checked_mul(self.element.width)?;
        let block = self.read(at, signature, length.checked_add(before + SUM)?)?;
        self.take(block.0.get((PREFIX + before) as usize..(PREFIX + before + length) as usize)?)
    }

    /// Reads the elements of consecutive pages from the address `start` on; `written` tells which of them were written.
    fn pages(&mut self, start: u64, elements: u64, page: u64, written: impl Fn(u64) -> bool) -> Option<()> {
        let (mut at, mut left) = (start, elements);
        for number in 0..elements.div_ceil(page) {
            let own = left.min(page);
            let length = own.checked_mul(self.element.width)?;
            match written(number) {
                _ if self.next >= self.grid.all => break,
                false => self.skip(own),
                true => {
                    let block = self.file.read_checked(at, length + SUM)?;
                    self.take(block.0.get(..length as usize)?)?;
                }
            }
            at = at.checked_add(length + SUM)?;
            left -= own;
        }
        Some(())
    }

    fn skip(&mut self, elements: u64) {
        self.next = self.next.saturating_add(elements);
    }

    fn take(&mut self, bytes: &[u8]) -> Option<()> {
        for element in bytes.chunks_exact(self.element.width as usize) {
            let offset = number(element, 0, 8)?;
            if self.next < self.grid.all && offset != UNDEFINED {
                let (size, skipped) = match self.element.kind {
                    0 => (self.chunk_bytes, 0),
                    _ => {
                        let end = self.element.width as usize - 4;
                        (number(element, 8, end - 8)?, number(element, end, 4)? as u32)
                    }
                };
                let first = self.grid.first(self.next)?;
                self.found.push(ListedChunk { first, offset, size, skipped });
            }
            self.next = self.next.saturating_add(1);
        }
        Some(())
    }
}

/// Reports whether a bit is set; bit 0 is the highest one of the first byte.
fn bit(bits: &[u8], number: u64) -> bool {
    let byte = usize::try_from(number / 8).ok().and_then(|at| bits.get(at));
    byte.is_some_and(|byte| byte & 0x80 >> (number % 8) != 0)
}
