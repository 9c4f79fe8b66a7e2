//! How deep JSON text nests, before a reader that recurses sees it.

/// The largest number of brackets open at once. Text that is not JSON has some answer too: never
/// less than the depth at which a reader stops on it.
pub(super) fn of_text(text: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                open += 1;
                deepest = deepest.max(open);
            }
            b']' | b'}' => open = open.saturating_sub(1),
            b'"' => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'\\' => drop(bytes.next()),
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    deepest
}
