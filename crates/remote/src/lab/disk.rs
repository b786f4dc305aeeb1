//! A disk of a guest, served by this program: how long a request takes at least, and which fail, is
//! decided here.
//!
//! QEMU is the client of a socket in the machine's directory and speaks NBD (the Network Block
//! Device protocol, github.com/NetworkBlockDevice/nbd, `doc/proto.md`: the fixed newstyle handshake
//! and simple replies). Nothing in QEMU 7 makes a request wait, and what in the kernel does
//! (dm-delay) counts in ticks of 4 ms there. A connection has [`WORKERS`] threads that each take the
//! next request, so that as many wait at the same time.
//!
//! This machine's page cache is bypassed where the requests are whole blocks of it.

use super::disk_cache::{DiskCache, VolatileCache};
use super::short::Short;
use stackrace_base::time::{Clock, SystemClock};
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Requests a disk works on at the same time: as many as QEMU sends over one connection.
pub(super) const WORKERS: usize = 16;

/// Interval at which it is checked whether the disk is still needed, and whether QEMU connects.
const LOOK: Duration = Duration::from_millis(20);

/// Alignment of what is read and written past the page cache, in the file and in memory, bytes.
const BLOCK: usize = 4096;

/// Longest read or write that is served, bytes; QEMU sends no longer ones.
const LENGTH_MAX: u32 = 64 << 20;

/// Longest option of a handshake, bytes: a name has at most 4096.
const OPTION_MAX: u32 = 8192;

const MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
const OPTION: u64 = u64::from_be_bytes(*b"IHAVEOPT");
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const REQUEST: u32 = 0x2560_9513;
const REPLY: u32 = 0x6744_6698;

/// Handshake: fixed newstyle, no padding.
const HANDSHAKE: u16 = 3;
/// Features understood besides reading and writing: flush, FUA, trim, write zeroes.
const UNDERSTOOD: u16 = 1 | 4 | 8 | 32 | 64;
/// A request that is to be on the medium when it is answered.
const FUA: u16 = 1;

/// Errors of the protocol: those of Linux.
const EIO: u32 = 5;
const EINVAL: u32 = 22;

/// Requests that fail: those that touch bytes of this range. A flush touches all.
pub(super) type Failing = std::ops::Range<u64>;

/// A disk that is served until this is dropped.
pub(super) struct Served {
    disk: Arc<Disk>,
}

struct Disk {
    cached: File,
    /// The same file past the page cache; `None` if its file system cannot.
    direct: Option<File>,
    bytes: u64,
    /// Least time a request takes.
    latency: Duration,
    failing: Mutex<Option<Failing>>,
    /// Volatile cache, held while anything is written, so that a flush covers all writes before it;
    /// `None` if what was answered is on the medium.
    cache: Option<Mutex<VolatileCache>>,
    ended: AtomicBool,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Served {
    /// Serves a file as a disk of `bytes` on the socket of a name in the file's directory.
    ///
    /// # Errors
    /// When the file cannot be opened or the socket not be made.
    pub(super) fn start(
        directory: &Path,
        file: &str,
        socket: &str,
        bytes: u64,
        latency_ns: u64,
        cache: DiskCache,
    ) -> std::io::Result<Self> {
        let path = directory.join(file);
        let mut both = File::options();
        both.read(true).write(true);
        let cached = both.open(&path)?;
        let flag = stackrace_system::direct().map(|flag| flag.bits().cast_signed());
        let disk = Arc::new(Disk {
            cached,
            // tmpfs and some others refuse O_DIRECT: their files are served through the cache.
            direct: flag
                .ok()
                .and_then(|flag| both.custom_flags(flag).open(&path).ok()),
            bytes,
            latency: Duration::from_nanos(latency_ns),
            failing: Mutex::new(None),
            cache: VolatileCache::of(cache).map(Mutex::new),
            ended: AtomicBool::new(false),
        });
        let short = Short::of(directory)?;
        let listener = UnixListener::bind(short.join(socket))?;
        // Otherwise the thread would wait in `accept` when the machine has ended.
        listener.set_nonblocking(true)?;
        let served = Arc::clone(&disk);
        std::thread::spawn(move || {
            while !served.ended.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        let disk = Arc::clone(&served);
                        // A guest that ended in mid-sentence wants nothing more.
                        std::thread::spawn(move || disk.serve(stream));
                    }
                    Err(_) => SystemClock.sleep(LOOK),
                }
            }
        });
        Ok(Self { disk })
    }

    /// Lets requests fail; `None` for no longer.
    pub(super) fn fail(&self, failing: Option<Failing>) {
        *held(&self.disk.failing) = failing;
    }

    /// Does to the disk what a power cut does: each sector that was not flushed is what it was before,
    /// or is not, as the seed has it. How many sectors were put back.
    ///
    /// # Errors
    /// The file refuses.
    pub(super) fn lose(&self, seed: u64) -> std::io::Result<usize> {
        match &self.disk.cache {
            Some(cache) => held(cache).lose(&self.disk.cached, seed),
            None => Ok(0),
        }
    }

    /// Bytes that the guest sees.
    pub(super) fn bytes(&self) -> u64 {
        self.disk.bytes
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.disk.ended.store(true, Ordering::Relaxed);
    }
}

/// One request as it came.
struct Request {
    flags: u16,
    kind: u16,
    cookie: u64,
    offset: u64,
    length: u32,
}

fn get<const N: usize>(from: &mut impl Read) -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn get_u32(from: &mut impl Read) -> std::io::Result<u32> {
    get(from).map(u32::from_be_bytes)
}

fn get_u64(from: &mut impl Read) -> std::io::Result<u64> {
    get(from).map(u64::from_be_bytes)
}

impl Disk {
    fn serve(self: &Arc<Self>, mut stream: UnixStream) -> std::io::Result<()> {
        // It may inherit the mode of its listener.
        stream.set_nonblocking(false)?;
        self.shake_hands(&mut stream)?;
        let writing = Arc::new(Mutex::new(stream.try_clone()?));
        let reading = Arc::new(Mutex::new(stream));
        // Threads and not one loop: each request sleeps until its answer is due.
        for _ in 0..WORKERS {
            let (disk, reading, writing) =
                (Arc::clone(self), Arc::clone(&reading), Arc::clone(&writing));
            std::thread::spawn(move || {
                while disk.one(&reading, &writing).is_ok() {}
                // One request that fails ends the connection: QEMU waits for no answer then.
                let _ = held(&writing).shutdown(Shutdown::Both);
            });
        }
        Ok(())
    }

    fn shake_hands(&self, stream: &mut UnixStream) -> std::io::Result<()> {
        let greeting = [&MAGIC.to_be_bytes()[..], &OPTION.to_be_bytes()].concat();
        stream.write_all(&greeting)?;
        stream.write_all(&HANDSHAKE.to_be_bytes())?;
        // The flags of the client: there is nothing in them to choose.
        get_u32(stream)?;
        loop {
            let (magic, option) = (get_u64(stream)?, get_u32(stream)?);
            let length = get_u32(stream)?;
            // A guest cannot reach this socket, but its size must not come from a damaged message.
            if magic != OPTION || length > OPTION_MAX {
                return Err(ErrorKind::InvalidData.into());
            }
            let mut data = vec![0; length as usize];
            stream.read_exact(&mut data)?;
            let mut reply = |kind: u32, data: &[u8]| {
                let length = data.len() as u32;
                let mut bytes = OPTION_REPLY.to_be_bytes().to_vec();
                for word in [option, kind, length] {
                    bytes.extend(word.to_be_bytes());
                }
                bytes.extend(data);
                stream.write_all(&bytes)
            };
            let size = [&self.bytes.to_be_bytes()[..], &UNDERSTOOD.to_be_bytes()].concat();
            match option {
                // The name of what is wanted: there is one disk, whatever it is called.
                1 => return stream.write_all(&size),
                2 => {
                    reply(1, &[])?;
                    return Err(ErrorKind::ConnectionAborted.into());
                }
                // What it is like, and "go": the size, then that this was all.
                6 | 7 => {
                    reply(3, &[&[0, 0], &size[..]].concat())?;
                    reply(1, &[])?;
                    if option == 7 {
                        return Ok(());
                    }
                }
                _ => reply((1 << 31) + 1, &[])?,
            }
        }
    }

    /// Takes the next request and answers it, not before its time.
    fn one(&self, reading: &Mutex<UnixStream>, writing: &Mutex<UnixStream>) -> std::io::Result<()> {
        let mut room = Vec::new();
        let (request, due) = {
            // Held while a whole request is read: its data follow its head.
            let mut stream = held(reading);
            let request = next(&mut *stream)?;
            // What is discarded does not come with the request.
            if request.kind < 2 && request.length > LENGTH_MAX {
                return Err(ErrorKind::InvalidData.into());
            }
            if request.kind == 1 {
                let data = aligned(&mut room, request.length as usize);
                stream.read_exact(data)?;
            }
            let latency = self.latency.as_nanos() as u64;
            (request, SystemClock.now_ns().saturating_add(latency))
        };
        let done = self.answer(&request, &mut room);
        // A request whose file took longer than the latency asked for is answered at once.
        let left = due.saturating_sub(SystemClock.now_ns());
        if left > 0 {
            SystemClock.sleep(Duration::from_nanos(left));
        }
        let error = match &done {
            Ok(()) => 0,
            Err(error) if error.kind() == ErrorKind::InvalidInput => EINVAL,
            Err(_) => EIO,
        };
        let mut head = REPLY.to_be_bytes().to_vec();
        head.extend(error.to_be_bytes());
        head.extend(request.cookie.to_be_bytes());
        let mut stream = held(writing);
        stream.write_all(&head)?;
        if request.kind == 0 && error == 0 {
            stream.write_all(aligned(&mut room, request.length as usize))?;
        }
        Ok(())
    }

    fn answer(&self, request: &Request, room: &mut Vec<u8>) -> std::io::Result<()> {
        let length = u64::from(request.length);
        let end = request.offset.checked_add(length);
        if end.is_none_or(|end| end > self.bytes) {
            return Err(ErrorKind::InvalidInput.into());
        }
        let touched = match request.kind {
            3 => 0..self.bytes,
            _ => request.offset..request.offset + length,
        };
        let failing = held(&self.failing).clone();
        if failing.is_some_and(|range| touched.start < range.end && range.start < touched.end) {
            return Err(Error::from_raw_os_error(EIO.cast_signed()));
        }
        let file = self.file(request.offset, length);
        match request.kind {
            0 => {
                let data = aligned(room, request.length as usize);
                file.read_exact_at(data, request.offset)
            }
            1 => {
                let data = aligned(room, request.length as usize);
                self.changes(request, || file.write_all_at(data, request.offset))
            }
            3 => {
                let mut cache = self.cache.as_ref().map(held);
                self.sync_if(true)?;
                cache.iter_mut().for_each(|cache| cache.flushed());
                Ok(())
            }
            4 | 6 => self.changes(request, || self.empty(request.offset, length)),
            _ => Err(ErrorKind::InvalidInput.into()),
        }
    }

    /// Changes what lies at a place; it is on the medium afterwards if that was asked for.
    fn changes(
        &self,
        request: &Request,
        change: impl FnOnce() -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let durable = request.flags & FUA != 0;
        let Some(cache) = &self.cache else {
            change()?;
            return self.sync_if(durable);
        };
        let end = request.offset + u64::from(request.length);
        let mut cache = held(cache);
        let touched = cache.changing(&self.cached, request.offset..end)?;
        change()?;
        self.sync_if(durable)?;
        if durable {
            cache.on_medium(&touched);
        }
        Ok(())
    }

    /// Past the page cache where the request is one of whole blocks.
    fn file(&self, offset: u64, length: u64) -> &File {
        let whole = (offset | length).is_multiple_of(BLOCK as u64);
        self.direct
            .as_ref()
            .filter(|_| whole)
            .unwrap_or(&self.cached)
    }

    fn sync_if(&self, wanted: bool) -> std::io::Result<()> {
        if wanted {
            self.cached.sync_data()?;
        }
        Ok(())
    }

    /// A hole, which reads as zeros, or zeros where the file system has no holes.
    fn empty(&self, offset: u64, length: u64) -> std::io::Result<()> {
        if length == 0 || stackrace_system::punch_hole(&self.cached, offset, length).is_ok() {
            return Ok(());
        }
        let zeros = vec![0; BLOCK];
        let mut at = offset;
        while at < offset + length {
            let now = (offset + length - at).min(BLOCK as u64) as usize;
            self.cached.write_all_at(&zeros[..now], at)?;
            at += now as u64;
        }
        Ok(())
    }
}

fn next(stream: &mut impl Read) -> std::io::Result<Request> {
    if get_u32(stream)? != REQUEST {
        return Err(ErrorKind::InvalidData.into());
    }
    let [flags, kind] = [get(stream)?, get(stream)?].map(u16::from_be_bytes);
    let request = Request {
        flags,
        kind,
        cookie: get_u64(stream)?,
        offset: get_u64(stream)?,
        length: get_u32(stream)?,
    };
    match request.kind {
        2 => Err(ErrorKind::ConnectionAborted.into()),
        _ => Ok(request),
    }
}

/// A number of bytes of a buffer that begin where direct I/O may; the same ones each time.
fn aligned(room: &mut Vec<u8>, length: usize) -> &mut [u8] {
    if room.len() < length + BLOCK {
        room.resize(length + BLOCK, 0);
    }
    let from = room.as_ptr().align_offset(BLOCK).min(BLOCK);
    &mut room[from..from + length]
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 1 << 20;

    /// A client that has shaken hands.
    fn client(directory: &Path) -> UnixStream {
        let mut stream = UnixStream::connect(directory.join("s")).unwrap();
        let [magic, option] = [get_u64(&mut stream), get_u64(&mut stream)].map(Result::unwrap);
        assert_eq!((magic, option), (MAGIC, OPTION));
        get::<2>(&mut stream).unwrap();
        stream.write_all(&3_u32.to_be_bytes()).unwrap();
        // Structured replies first, as QEMU does; then go.
        for (option, data) in [(8_u32, vec![]), (7, vec![0; 6])] {
            stream.write_all(&OPTION.to_be_bytes()).unwrap();
            stream.write_all(&option.to_be_bytes()).unwrap();
            let length = data.len() as u32;
            stream.write_all(&length.to_be_bytes()).unwrap();
            stream.write_all(&data).unwrap();
            loop {
                assert_eq!(get_u64(&mut stream).unwrap(), OPTION_REPLY);
                assert_eq!(get_u32(&mut stream).unwrap(), option);
                let (kind, length) = (get_u32(&mut stream), get_u32(&mut stream).unwrap());
                let mut data = vec![0; length as usize];
                stream.read_exact(&mut data).unwrap();
                match kind.unwrap() {
                    3 => assert_eq!(data[2..10], BYTES.to_be_bytes()),
                    1 => break,
                    _ => {
                        assert_eq!(option, 8);
                        break;
                    }
                }
            }
        }
        stream
    }

    fn ask(stream: &mut UnixStream, kind: u16, cookie: u64, offset: u64, length: u32) {
        let mut bytes = REQUEST.to_be_bytes().to_vec();
        bytes.extend([0_u16.to_be_bytes(), kind.to_be_bytes()].concat());
        bytes.extend([cookie.to_be_bytes(), offset.to_be_bytes()].concat());
        bytes.extend(length.to_be_bytes());
        stream.write_all(&bytes).unwrap();
    }

    fn answer(stream: &mut UnixStream) -> (u32, u64) {
        assert_eq!(get_u32(stream).unwrap(), REPLY);
        (get_u32(stream).unwrap(), get_u64(stream).unwrap())
    }

    fn served(latency_ns: u64) -> (tempfile::TempDir, Served, UnixStream) {
        cached(latency_ns, DiskCache::Off)
    }

    fn cached(latency_ns: u64, cache: DiskCache) -> (tempfile::TempDir, Served, UnixStream) {
        let directory = tempfile::tempdir().unwrap();
        let file = File::create(directory.path().join("f")).unwrap();
        file.set_len(BYTES).unwrap();
        let served = Served::start(directory.path(), "f", "s", BYTES, latency_ns, cache).unwrap();
        let stream = client(directory.path());
        (directory, served, stream)
    }

    #[test]
    fn what_is_written_is_read_until_it_is_discarded() {
        let (_directory, _served, mut stream) = served(0);
        for (offset, length) in [(512, 512_u32), (8192, 8192), (0, 3)] {
            let written: Vec<u8> = (0..length).map(|at| (at % 251) as u8 + 1).collect();
            ask(&mut stream, 1, 7, offset, length);
            stream.write_all(&written).unwrap();
            assert_eq!(answer(&mut stream), (0, 7));
            let mut read = vec![0; length as usize];
            for discarded in [false, true] {
                ask(&mut stream, 0, 8, offset, length);
                assert_eq!(answer(&mut stream), (0, 8));
                stream.read_exact(&mut read).unwrap();
                match discarded {
                    false => assert_eq!(read, written),
                    true => assert!(read.iter().all(|&byte| byte == 0)),
                }
                let kind = if discarded { 3 } else { 4 };
                ask(&mut stream, kind, 9, offset, length);
                assert_eq!(answer(&mut stream), (0, 9));
            }
        }
        ask(&mut stream, 0, 1, BYTES - 1, 2);
        assert_eq!(answer(&mut stream), (EINVAL, 1), "beyond the end");
        // Longer than any read is, and refused for its place alone.
        ask(&mut stream, 4, 2, 0, u32::MAX);
        assert_eq!(answer(&mut stream), (EINVAL, 2));
        ask(&mut stream, 0, 3, 0, u32::MAX);
        assert!(get_u32(&mut stream).is_err(), "the connection has ended");
    }

    #[test]
    fn a_guest_that_asks_for_anything_ends_its_own_connection_alone() {
        let (directory, _served, _first) = served(0);
        for at in (0..200).map(|seed: u64| seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)) {
            let mut stream = client(directory.path());
            ask(
                &mut stream,
                (at >> 60) as u16,
                1,
                at >> (at % 64),
                at as u32,
            );
            stream.shutdown(Shutdown::Write).unwrap();
            // An answer or none: it does not hang.
            let _ = stream.read_to_end(&mut Vec::new());
        }
    }

    /// Writes 64 sectors, half of them before a flush, cuts the power, and counts those of each half
    /// that are there.
    fn kept(cache: DiskCache, flags: u16, seed: u64) -> [usize; 2] {
        let (directory, served, mut stream) = cached(0, cache);
        for at in 0..64_u64 {
            let mut bytes = REQUEST.to_be_bytes().to_vec();
            bytes.extend([flags.to_be_bytes(), 1_u16.to_be_bytes()].concat());
            bytes.extend([1_u64.to_be_bytes(), (at * 512).to_be_bytes()].concat());
            bytes.extend(512_u32.to_be_bytes());
            bytes.extend([7; 512]);
            stream.write_all(&bytes).unwrap();
            assert_eq!(answer(&mut stream), (0, 1));
            if at == 31 {
                ask(&mut stream, 3, 2, 0, 0);
                assert_eq!(answer(&mut stream), (0, 2));
            }
        }
        served.lose(seed).unwrap();
        let left = std::fs::read(directory.path().join("f")).unwrap();
        let there = |half: usize| {
            let sectors = left[half * 32 * 512..].chunks(512).take(32);
            sectors.filter(|sector| sector[0] == 7).count()
        };
        [there(0), there(1)]
    }

    #[test]
    fn a_power_cut_takes_a_part_of_what_was_not_flushed_and_nothing_else() {
        assert_eq!(kept(DiskCache::Off, 0, 1), [32, 32]);
        let [flushed, rest] = kept(DiskCache::Volatile, 0, 1);
        assert_eq!(flushed, 32);
        assert!((4..=28).contains(&rest), "{rest}");
        assert_eq!(kept(DiskCache::Volatile, 0, 1), [flushed, rest]);
        assert_eq!(kept(DiskCache::Volatile, FUA, 1), [32, 32]);
        let [flushed, rest] = kept(DiskCache::Lying, FUA, 1);
        assert!(flushed < 32 && rest < 32);
    }

    #[test]
    fn requests_wait_at_the_same_time_and_each_long_enough() {
        let latency_ns = 30_000_000;
        let (_directory, _served, mut stream) = served(latency_ns);
        let began = SystemClock.now_ns();
        for cookie in 0..WORKERS as u64 {
            ask(&mut stream, 0, cookie, cookie * 4096, 1);
        }
        let mut cookies: Vec<u64> = Vec::new();
        for _ in 0..WORKERS {
            cookies.push(answer(&mut stream).1);
            get::<1>(&mut stream).unwrap();
            assert!(SystemClock.now_ns() - began >= latency_ns);
        }
        cookies.sort_unstable();
        assert!(cookies.into_iter().eq(0..WORKERS as u64));
    }

    #[test]
    fn what_is_to_fail_fails_and_nothing_else() {
        let (_directory, served, mut stream) = served(0);
        let mut found = |failing: Option<Failing>| {
            served.fail(failing);
            let asked = [(0, 4096, 4096), (4, 8192, 512), (3, 0, 0)];
            asked.map(|(kind, offset, length)| {
                ask(&mut stream, kind, 0, offset, length);
                let error = answer(&mut stream).0;
                if kind == 0 && error == 0 {
                    get::<4096>(&mut stream).unwrap();
                }
                error
            })
        };
        assert_eq!(found(None), [0, 0, 0]);
        assert_eq!(found(Some(8000..8200)), [EIO, EIO, EIO]);
        assert_eq!(found(Some(8400..8401)), [0, EIO, EIO]);
        assert_eq!(found(Some(0..BYTES)), [EIO, EIO, EIO]);
        assert_eq!(found(None), [0, 0, 0]);
    }
}
