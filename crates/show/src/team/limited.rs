//! A connection on which a server can make us hold only so much.
//!
//! The library holds whatever arrives until it is asked for, and a server that is not PostgreSQL at
//! all can send without end: on loopback any user of the machine can be that server. So the messages
//! are counted here, below the library. It hands out no stream of its own, but lets encryption wrap
//! one: what is not encrypted goes the same way.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready as done};

use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use stackrace_base::unit;

/// Bytes of one message: its kind, and the length of the rest with itself.
const HEAD: usize = 5;
/// Bytes of all that a server may say without being asked, as long as the connection lasts.
const UNASKED_MAX: u64 = 1 << 20;

/// Bytes that the answers on several connections may have together.
#[derive(Debug, Clone)]
pub(super) struct Allowance {
    most: u64,
    held: Arc<AtomicU64>,
}

impl Allowance {
    /// Allows so many bytes on all connections together.
    pub(super) fn new(most: u64) -> Self {
        Self {
            most,
            held: Arc::default(),
        }
    }
}

/// Makes connections that are limited.
pub(super) struct Limited<T> {
    pub(super) encryption: T,
    pub(super) allowance: Allowance,
}

impl<S, T: MakeTlsConnect<S>> MakeTlsConnect<S> for Limited<T>
where
    <T::TlsConnect as TlsConnect<S>>::Future: Send + 'static,
{
    type Stream = LimitedStream<T::Stream>;
    type TlsConnect = Limited<T::TlsConnect>;
    type Error = T::Error;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Self::TlsConnect, T::Error> {
        Ok(Limited {
            encryption: self.encryption.make_tls_connect(domain)?,
            allowance: self.allowance.clone(),
        })
    }
}

impl<S, T: TlsConnect<S>> TlsConnect<S> for Limited<T>
where
    T::Future: Send + 'static,
{
    type Stream = LimitedStream<T::Stream>;
    type Error = T::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Stream, T::Error>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let connecting = self.encryption.connect(stream);
        let counted = Counted::new(self.allowance);
        Box::pin(async move {
            let stream = connecting.await?;
            Ok(LimitedStream { stream, counted })
        })
    }
}

/// No encryption: bytes go through as they are.
pub(super) struct Unencrypted;

impl<S: AsyncRead + AsyncWrite + Unpin> MakeTlsConnect<S> for Unencrypted {
    type Stream = UnencryptedStream<S>;
    type TlsConnect = Self;
    type Error = Infallible;

    fn make_tls_connect(&mut self, _: &str) -> Result<Self, Infallible> {
        Ok(Self)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsConnect<S> for Unencrypted {
    type Stream = UnencryptedStream<S>;
    type Error = Infallible;
    type Future = Ready<Result<UnencryptedStream<S>, Infallible>>;

    fn connect(self, stream: S) -> Self::Future {
        ready(Ok(UnencryptedStream(stream)))
    }
}

/// A stream of bytes without encryption.
pub(super) struct UnencryptedStream<S>(S);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for UnencryptedStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for UnencryptedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for UnencryptedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// A stream that ends with an error where the server sends too much.
pub(super) struct LimitedStream<S> {
    stream: S,
    counted: Counted,
}

impl<S: TlsStream + Unpin> TlsStream for LimitedStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.stream.channel_binding()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for LimitedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        done!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        Poll::Ready(self.counted.count(&buffer.filled()[before..]))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for LimitedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The messages of a server, counted as they arrive.
struct Counted {
    allowance: Allowance,
    /// Bytes of the present answer so far.
    answer: u64,
    /// Bytes that came without being asked for.
    unasked: u64,
    head: [u8; HEAD],
    /// Bytes of the head that are there.
    known: usize,
    /// Bytes of the present message that are still to come.
    left: u64,
}

impl Counted {
    fn new(allowance: Allowance) -> Self {
        Self {
            allowance,
            answer: 0,
            unasked: 0,
            head: [0; HEAD],
            known: 0,
            left: 0,
        }
    }

    fn count(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let passed = bytes
                    .len()
                    .min(usize::try_from(self.left).unwrap_or(usize::MAX));
                self.left -= passed as u64;
                bytes = &bytes[passed..];
                continue;
            }
            let taken = bytes.len().min(HEAD - self.known);
            self.head[self.known..self.known + taken].copy_from_slice(&bytes[..taken]);
            self.known += taken;
            bytes = &bytes[taken..];
            if self.known == HEAD {
                self.known = 0;
                self.begin()?;
            }
        }
        Ok(())
    }

    /// Looks at the head of a message: before the rest arrives, for the library makes room by it.
    fn begin(&mut self) -> io::Result<()> {
        let [kind, length @ ..] = self.head;
        let length = u64::from(u32::from_be_bytes(length));
        self.left = length.saturating_sub(4);
        let too_much = |most: u64| {
            let most = unit::bytes(most);
            Err(io::Error::other(format!("it sends more than {most}")))
        };
        match kind {
            // Settings, notices and notifications: none of them ends an answer, and all can be endless.
            b'S' | b'N' | b'A' => {
                self.unasked += length + 1;
                if self.unasked > UNASKED_MAX {
                    return too_much(UNASKED_MAX);
                }
            }
            // The answer is whole. The library refuses one that it did not ask for.
            b'Z' => self.end(),
            _ => {}
        }
        self.answer += length + 1;
        let held = self.allowance.held.fetch_add(length + 1, Ordering::Relaxed);
        if held + length + 1 > self.allowance.most {
            return too_much(self.allowance.most);
        }
        Ok(())
    }

    fn end(&mut self) {
        self.allowance
            .held
            .fetch_sub(self.answer, Ordering::Relaxed);
        self.answer = 0;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.end();
    }
}
