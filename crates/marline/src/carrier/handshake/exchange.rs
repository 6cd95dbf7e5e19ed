use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::MAX_MESSAGE;

/// Why a message did not come.
#[derive(Debug, thiserror::Error)]
pub(in super::super) enum ExchangeError {
    #[error("a message of {0} bytes is longer than the {MAX_MESSAGE} allowed")]
    TooLong(usize),
    #[error("{}", plain(.0))]
    Io(#[from] io::Error),
}

/// What happened to the stream, in words for people: TLS explains an end without a farewell by a
/// link to its documentation.
fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => String::from("the other end closed the connection"),
        _ => format!("the stream failed: {error}"),
    }
}

/// Writes a message that has its length field.
pub(in super::super) async fn send(
    stream: &mut (impl AsyncWrite + Unpin),
    message: &[u8],
) -> io::Result<()> {
    stream.write_all(message).await?;
    stream.flush().await
}

/// Reads a message and drops its length field. Takes no more memory than the peer has sent.
pub(in super::super) async fn receive(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<Bytes, ExchangeError> {
    let length = usize::from(stream.read_u16().await?);
    if length > MAX_MESSAGE {
        return Err(ExchangeError::TooLong(length));
    }
    let mut message = Vec::new();
    let got = stream.take(length as u64).read_to_end(&mut message).await?;
    if got < length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(message.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_are_taken_one_by_one_and_bounded() {
        let mut two: &[u8] = b"\x00\x02ab\x00\x00\xff";
        assert_eq!(receive(&mut two).await.unwrap(), "ab");
        assert_eq!(receive(&mut two).await.unwrap(), "");
        assert_eq!(two, b"\xff");
        let mut long: &[u8] = b"\x10\x01...";
        assert!(matches!(
            receive(&mut long).await,
            Err(ExchangeError::TooLong(4097))
        ));
        for mut short in [&b""[..], b"\x00", b"\x00\x02a"] {
            assert!(matches!(
                receive(&mut short).await,
                Err(ExchangeError::Io(_))
            ));
        }
    }
}
