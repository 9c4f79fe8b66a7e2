//! Lets clients on gRPC's C core (Python, C++, Ruby, PHP) call servers on Unix sockets.
//!
//! On a Unix socket these clients send the percent-encoded path of the socket as the authority. No
//! host name contains `%`, so the HTTP/2 library refuses their calls. Nothing here reads the
//! authority, so [`SocketAuthority`] replaces each `%` in it by `-` while the bytes pass.
//!
//! The replacement keeps all lengths, and so the state of HTTP/2's header compression. Clients on
//! the C core send the authority as plain text. A compressed one is left as it is.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection over a Unix socket whose client may send the path of the socket as the authority.
#[derive(Debug)]
pub(super) struct SocketAuthority<S> {
    inner: S,
    frames: Frames,
}

impl<S> SocketAuthority<S> {
    /// Wraps a connection, before anything was read from it.
    pub(super) fn new(inner: S) -> Self {
        Self { inner, frames: Frames::default() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for SocketAuthority<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        if let Some(fresh) = buf.filled_mut().get_mut(before..) {
            self.frames.pass(fresh);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for SocketAuthority<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`, which every client sends first.
const PREFACE: usize = 24;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// The frames that a client sends (RFC 9113, section 4.1).
#[derive(Debug)]
struct Frames {
    next: Part,
    fields: Fields,
}

/// What the next byte belongs to.
#[derive(Debug)]
enum Part {
    FrameHeader {
        bytes: [u8; 9],
        filled: usize,
    },
    /// Bytes that are not header fields. `block` bytes of header fields follow.
    Other {
        left: usize,
        block: usize,
    },
    /// Header fields.
    Block {
        left: usize,
    },
}

const FRAME: Part = Part::FrameHeader { bytes: [0; 9], filled: 0 };

impl Default for Frames {
    fn default() -> Self {
        Self { next: Part::Other { left: PREFACE, block: 0 }, fields: Fields::default() }
    }
}

impl Frames {
    /// Corrects the authority in bytes that follow those of the last call.
    fn pass(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let (taken, next) = match &mut self.next {
                Part::FrameHeader { bytes: header, filled } => {
                    let taken = bytes.len().min(header.len() - *filled);
                    header[*filled..*filled + taken].copy_from_slice(&bytes[..taken]);
                    *filled += taken;
                    (taken, (*filled == header.len()).then(|| self.fields.in_frame(*header)))
                }
                Part::Other { left, block } => {
                    let taken = bytes.len().min(*left);
                    *left -= taken;
                    let block = Part::Block { left: *block };
                    (taken, (*left == 0).then_some(block))
                }
                Part::Block { left } => {
                    let taken = bytes.len().min(*left);
                    bytes[..taken].iter_mut().for_each(|byte| self.fields.pass(byte));
                    *left -= taken;
                    (taken, None)
                }
            };
            bytes = &mut bytes[taken..];
            self.next = match next.unwrap_or(std::mem::replace(&mut self.next, FRAME)) {
                Part::Other { left: 0, block: 0 } | Part::Block { left: 0 } => FRAME,
                Part::Other { left: 0, block } => Part::Block { left: block },
                part => part,
            };
        }
    }
}

/// Header fields (RFC 7541, section 6).
#[derive(Debug, Default)]
struct Fields {
    next: Token,
    /// Whether the field is the authority.
    authority: bool,
}

/// What the next byte of a header field is.
#[derive(Clone, Copy, Debug, Default)]
enum Token {
    /// The first byte of a field.
    #[default]
    Field,
    /// More bytes of an index. A value follows it if the field is a literal.
    Index { literal: bool },
    /// The first byte of the length of a text.
    Length(Text),
    /// More bytes of a length.
    LengthRest { text: Text, compressed: bool, length: usize, shift: u32 },
    /// A byte of a text.
    Byte { text: Text, compressed: bool, position: usize, length: usize },
    /// Something that is not a header field. The HTTP/2 library will refuse it.
    Invalid,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Text {
    Name,
    Value,
}

const AUTHORITY: &[u8] = b":authority";
/// The position of the authority in the static table.
const AUTHORITY_INDEX: u8 = 1;

impl Fields {
    /// Reads the header of a frame. Returns the part that follows it.
    fn in_frame(&mut self, header: [u8; 9]) -> Part {
        let [high, middle, low, r#type, flags, ..] = header;
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        match r#type {
            // No client on the C core pads header fields.
            HEADERS if flags & PADDED == 0 => {
                *self = Self::default();
                let before = if flags & PRIORITY == 0 { 0 } else { length.min(5) };
                Part::Other { left: before, block: length - before }
            }
            CONTINUATION => Part::Block { left: length },
            _ => Part::Other { left: length, block: 0 },
        }
    }

    fn pass(&mut self, byte: &mut u8) {
        self.next = match self.next {
            Token::Field => self.field(*byte),
            Token::Index { .. } if *byte & 0x80 != 0 => self.next,
            Token::Index { literal: true } => Token::Length(Text::Value),
            Token::Index { literal: false } => Token::Field,
            Token::Length(text) => {
                let (compressed, length) = (*byte & 0x80 != 0, usize::from(*byte & 0x7f));
                if length == 0x7f {
                    Token::LengthRest { text, compressed, length, shift: 0 }
                } else {
                    self.text(text, compressed, 0, length)
                }
            }
            Token::LengthRest { shift: 28.., .. } | Token::Invalid => Token::Invalid,
            Token::LengthRest { text, compressed, length, shift } => {
                let length = length + (usize::from(*byte & 0x7f) << shift);
                if *byte & 0x80 == 0 {
                    self.text(text, compressed, 0, length)
                } else {
                    Token::LengthRest { text, compressed, length, shift: shift + 7 }
                }
            }
            Token::Byte { text, compressed, position, length } => {
                match text {
                    Text::Name => self.authority &= AUTHORITY.get(position) == Some(byte),
                    Text::Value if self.authority && !compressed && *byte == b'%' => *byte = b'-',
                    Text::Value => {}
                }
                self.text(text, compressed, position + 1, length)
            }
        };
    }

    /// Reads the first byte of a field.
    fn field(&mut self, byte: u8) -> Token {
        let (mask, literal) = match byte {
            0x80.. => (0x7f, false),
            0x40.. => (0x3f, true),
            0x20.. => (0x1f, false),
            _ => (0x0f, true),
        };
        let index = byte & mask;
        self.authority = index == AUTHORITY_INDEX;
        match (literal, index) {
            (_, index) if index == mask => Token::Index { literal },
            (false, _) => Token::Field,
            (true, 0) => Token::Length(Text::Name),
            (true, _) => Token::Length(Text::Value),
        }
    }

    /// What follows at a position in a text.
    fn text(&mut self, text: Text, compressed: bool, position: usize, length: usize) -> Token {
        if text == Text::Name && position == 0 {
            self.authority = length == AUTHORITY.len() && !compressed;
        }
        match text {
            _ if position < length => Token::Byte { text, compressed, position, length },
            Text::Name => Token::Length(Text::Value),
            Text::Value => Token::Field,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

    fn frame(r#type: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[r#type, flags, 0, 0, 0, 1], payload].concat()
    }

    fn literal(first: u8, name: &[u8], value: &[u8]) -> Vec<u8> {
        let text = |text: &[u8]| {
            let mut length = vec![u8::try_from(text.len().min(0x7f)).unwrap()];
            if text.len() >= 0x7f {
                let rest = text.len() - 0x7f;
                length.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
                length.push(u8::try_from(rest >> 7).unwrap());
            }
            [length, text.to_vec()].concat()
        };
        let name = if name.is_empty() { Vec::new() } else { text(name) };
        [vec![first], name, text(value)].concat()
    }

    /// The frames after they have passed in pieces of each size.
    fn passed(frames: &[u8]) -> Vec<u8> {
        let bytes = [START, frames].concat();
        let in_pieces = |size: usize| {
            let mut bytes = bytes.clone();
            let mut state = Frames::default();
            bytes.chunks_mut(size).for_each(|piece| state.pass(piece));
            bytes
        };
        let whole = in_pieces(bytes.len());
        for size in 1..40 {
            assert_eq!(in_pieces(size), whole, "in pieces of {size}");
        }
        assert!(whole.starts_with(START));
        whole[START.len()..].to_vec()
    }

    #[test]
    fn a_path_as_the_authority_becomes_a_host_name() {
        let long = [b"run%2F".as_slice(), &[b'x'; 300], b"%2Fs"].concat();
        let long_host = [b"run-2F".as_slice(), &[b'x'; 300], b"-2Fs"].concat();
        for (before, after) in [
            (&b"tmp%2Frender.sock"[..], &b"tmp-2Frender.sock"[..]),
            (b"localhost", b"localhost"),
            (b"", b""),
            (&long, &long_host),
        ] {
            // With an index of the static table, in the three ways of a literal; and by name.
            for (first, name) in [(0x41, &b""[..]), (0x01, b""), (0x11, b""), (0x40, AUTHORITY)] {
                let block = |value: &[u8]| {
                    let around = literal(0x40, b"path", b"%");
                    [&[0x83, 0x3f, 0x80, 0x01][..], &around, &literal(first, name, value), &around]
                        .concat()
                };
                let (sent, expected) = (block(before), block(after));
                assert_eq!(passed(&frame(HEADERS, 4, &sent)), frame(HEADERS, 4, &expected));
                let (data, priority) = (frame(0, 0, b"\x41\x01%"), [&[0; 5], &sent[..]].concat());
                let sent = [data.clone(), frame(HEADERS, 0x24, &priority)].concat();
                let priority = [&[0; 5], &expected[..]].concat();
                let expected = [data, frame(HEADERS, 0x24, &priority)].concat();
                assert_eq!(passed(&sent), expected);
            }
        }
    }

    #[test]
    fn header_fields_may_continue_in_another_frame() {
        let split = |block: &[u8]| {
            let (first, rest) = block.split_at(6);
            [frame(HEADERS, 0, first), frame(CONTINUATION, 4, rest)].concat()
        };
        let sent = split(&literal(0x41, b"", b"a%2Fb%2Fc"));
        assert_eq!(passed(&sent), split(&literal(0x41, b"", b"a-2Fb-2Fc")));
    }

    #[test]
    fn other_fields_and_frames_pass_unchanged() {
        let huge_index = [&[0x7f, 0x02][..], &literal(0, b"", b"%")[1..]].concat();
        let compressed = [0x41, 0x81, b'%'].to_vec();
        let endless_length = [vec![0x41, 0x7f], vec![0xff; 20], b"%%%".to_vec()].concat();
        for block in [
            literal(0x44, b"", b"%"),
            literal(0x40, b":authoritY", b"%"),
            literal(0x40, b":authority2", b"%"),
            literal(0x40, b":author", b"%"),
            huge_index,
            compressed,
            endless_length,
        ] {
            let sent = frame(HEADERS, 4, &block);
            assert_eq!(passed(&sent), sent);
        }
        let padded = frame(HEADERS, 4 | PADDED, &[&[0][..], &literal(0x41, b"", b"%")].concat());
        assert_eq!(passed(&padded), padded);
    }

    proptest! {
        #[test]
        fn nothing_but_percent_signs_ever_changes(
            blocks in prop::collection::vec(
                (0u8..12, any::<u8>(), prop::collection::vec(any::<u8>(), 0..40)),
                0..6,
            ),
        ) {
            let sent: Vec<u8> =
                blocks.iter().flat_map(|(kind, flags, block)| frame(*kind, *flags, block)).collect();
            let passed = passed(&sent);
            prop_assert_eq!(passed.len(), sent.len());
            for (passed, sent) in passed.iter().zip(&sent) {
                prop_assert!(passed == sent || (*sent == b'%' && *passed == b'-'));
            }
        }
    }
}
