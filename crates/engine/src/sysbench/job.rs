//! The work of the threads of a plan.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::live::LiveCounters;
use super::plan::{SysbenchPlan, SysbenchVersion};
use super::requests::{RequestSource, SysbenchRequest, SysbenchStep};
use crate::outcome::{Op, OpOutcome};
use crate::pacing::exponential;
use crate::watch::spin_ns;
use crate::worker_pool::{Halt, Worker};
use stackrace_system::draw::Draw;
use stackrace_system::sleep_ns;

/// Longest sleep before a thread checks again whether to stop, ns.
const LOOK_NS: u64 = 10_000_000;

/// One method to read, write and sync.
pub(super) trait TransferMethod: Sized {
    /// Carries a step out, or begins to.
    fn transfer(
        &mut self,
        step: SysbenchStep,
        begun_ns: u64,
        job: &Job<'_>,
        worker: &mut Worker<'_>,
    ) -> Result<(), Halt>;
    /// Makes a file durable.
    fn sync(&mut self, file: u32) -> Result<(), Halt>;
    /// Waits for what was begun.
    fn drain(&mut self, _job: &Job<'_>, _worker: &mut Worker<'_>) -> Result<(), Halt> {
        Ok(())
    }
}

/// State shared by all threads.
pub(super) struct Job<'a> {
    pub(super) plan: &'a SysbenchPlan,
    pub(super) source: &'a RequestSource<'a>,
    pub(super) live: Option<&'a LiveCounters>,
    /// Time of the next arrival of an open loop that no thread has taken yet.
    pub(super) next_arrival_ns: AtomicU64,
    pub(super) before_end: &'a Mutex<Vec<Vec<OpOutcome>>>,
}

/// Purposes of the seed besides the blocks' content.
const ARRIVALS: u64 = 0x6172_7269_7665_0000;
const PLACES: u64 = 0x706c_6163_6573_0000;

impl Job<'_> {
    pub(super) fn work<M: TransferMethod>(
        &self,
        thread: u32,
        mut method: M,
        worker: &mut Worker<'_>,
    ) -> Result<(), Halt> {
        let mut arrivals = Draw::new(self.plan.seed, ARRIVALS | u64::from(thread));
        let mut places = Draw::new(self.plan.seed, PLACES | u64::from(thread));
        let result = match self.plan.rate {
            None => self.closed(thread as usize, &mut method, &mut places, worker),
            Some(rate) => {
                let mean_ns = 1e9 / rate;
                self.open_loop(
                    thread as usize,
                    &mut method,
                    &mut places,
                    worker,
                    |job, worker| job.arrival(mean_ns, &mut arrivals, worker),
                )
            }
        };
        // Even after an error: the kernel may still use the buffers.
        let drained = method.drain(self, worker);
        let mut all = self
            .before_end
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // Before the closing fsyncs: the report of version 1.0 leaves them out.
        all[thread as usize] = worker.done();
        drop(all);
        result?;
        drained?;
        self.close(&mut method, worker)
    }

    fn closed<M: TransferMethod>(
        &self,
        thread: usize,
        method: &mut M,
        places: &mut Draw,
        worker: &mut Worker<'_>,
    ) -> Result<(), Halt> {
        let deadline_ns = self.plan.time_ns.unwrap_or(u64::MAX);
        loop {
            worker.proceed()?;
            let now_ns = worker.now_ns();
            if now_ns >= deadline_ns {
                return Ok(());
            }
            let Some(request) = self.source.next(thread, places) else {
                return Ok(());
            };
            self.carry_out(request, thread, now_ns, method, worker)?;
        }
    }

    fn open_loop<M: TransferMethod>(
        &self,
        thread: usize,
        method: &mut M,
        places: &mut Draw,
        worker: &mut Worker<'_>,
        mut arrival: impl FnMut(&Self, &mut Worker<'_>) -> Result<Option<u64>, Halt>,
    ) -> Result<(), Halt> {
        while let Some(arrived_ns) = arrival(self, worker)? {
            let Some(request) = self.source.next(thread, places) else {
                return Ok(());
            };
            self.carry_out(request, thread, arrived_ns, method, worker)?;
        }
        Ok(())
    }

    /// Takes the next arrival of the queue and waits for it. Returns `None` if time is up before.
    /// The thread that takes it draws the gap to the next one.
    fn arrival(
        &self,
        mean_ns: f64,
        draw: &mut Draw,
        worker: &mut Worker<'_>,
    ) -> Result<Option<u64>, Halt> {
        let gap_ns = exponential(mean_ns, draw.bits()) as u64;
        // Relaxed: only the sum counts, and it orders nothing else.
        let due_ns = self.next_arrival_ns.fetch_add(gap_ns, Ordering::Relaxed) + gap_ns;
        let deadline_ns = self.plan.time_ns.unwrap_or(u64::MAX);
        let spin_ns = spin_ns(self.plan.threads);
        loop {
            worker.proceed()?;
            let now_ns = worker.now_ns();
            if now_ns >= deadline_ns {
                return Ok(None);
            }
            if now_ns >= due_ns {
                return Ok(Some(due_ns));
            }
            // Sleeps end late, so the last stretch is spent spinning.
            match due_ns.min(deadline_ns).saturating_sub(now_ns + spin_ns) {
                0 => std::hint::spin_loop(),
                left_ns => sleep_ns(left_ns.min(LOOK_NS)),
            }
        }
    }

    #[inline(always)]
    fn carry_out<M: TransferMethod>(
        &self,
        request: SysbenchRequest,
        thread: usize,
        begun_ns: u64,
        method: &mut M,
        worker: &mut Worker<'_>,
    ) -> Result<(), Halt> {
        match request {
            SysbenchRequest::Move(step) => {
                method.transfer(step, begun_ns, self, worker)?;
                self.source.release(thread);
                Ok(())
            }
            SysbenchRequest::Fsync { file } => {
                method.sync(file)?;
                let ended_ns = worker.now_ns();
                worker.record(Op::Fsync, begun_ns, ended_ns, 0);
                self.tell(Op::Fsync, ended_ns.saturating_sub(begun_ns), 0);
                Ok(())
            }
        }
    }

    /// A read or write is done: syncs it if every write is, and records it.
    #[inline(always)]
    pub(super) fn done<M: TransferMethod>(
        &self,
        method: &mut M,
        (op, file, bytes): (Op, u32, u64),
        begun_ns: u64,
        worker: &mut Worker<'_>,
    ) -> Result<(), Halt> {
        let mut ended_ns = worker.now_ns();
        if self.plan.fsync_each && op == Op::Write {
            method.sync(file)?;
            let written_ns = ended_ns;
            ended_ns = worker.now_ns();
            worker.record(Op::Fsync, written_ns, ended_ns, 0);
            if let Some(live) = self.live {
                live.fsync();
            }
        }
        worker.record(op, begun_ns, ended_ns, bytes);
        self.source.completed(op);
        self.tell(op, ended_ns.saturating_sub(begun_ns), bytes);
        Ok(())
    }

    #[inline(always)]
    fn tell(&self, op: Op, latency_ns: u64, bytes: u64) {
        if let Some(live) = self.live {
            live.event(op, latency_ns, bytes);
        }
    }

    /// Version 1.0: each thread syncs all files, whatever mode wrote them last.
    fn close<M: TransferMethod>(
        &self,
        method: &mut M,
        worker: &mut Worker<'_>,
    ) -> Result<(), Halt> {
        let plan = self.plan;
        let asked = plan.version == SysbenchVersion::V1_0 && plan.fsync_at_end && !plan.fsync_each;
        if !asked || !plan.mode.writes() {
            return Ok(());
        }
        for file in 0..plan.files {
            worker.proceed()?;
            let begun_ns = worker.now_ns();
            method.sync(file)?;
            let ended_ns = worker.now_ns();
            worker.record(Op::Fsync, begun_ns, ended_ns, 0);
            if let Some(live) = self.live {
                live.fsync();
            }
        }
        Ok(())
    }
}
