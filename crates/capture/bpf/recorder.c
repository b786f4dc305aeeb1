// SPDX-License-Identifier: MIT OR Apache-2.0
// What `stackrace record` runs in the kernel: it looks at the system calls of some processes, at who forked and woke
// whom, and at the time that a thread was off its processor. It changes nothing and waits for nothing: what finds no
// room in the ring is counted. `build.sh` compiles it. `struct event` is read by `crates/trace/src/trace/raw.rs`.
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include <stdbool.h>

// The helpers that read memory need a licence that the kernel knows.
char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define NAME_MAX 256
#define CALLS 512
#define AT_FDCWD -100

// The parts of the kernel's structures that are read; the loader moves them to where this kernel has them.
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct super_block { __u32 s_dev; };
struct inode { __u16 i_mode; struct super_block *i_sb; unsigned long i_ino; };
struct dentry { struct inode *d_inode; };
struct path { struct dentry *dentry; };
struct file { __u32 f_flags; struct inode *f_inode; __s64 f_pos; };
struct fdtable { unsigned int max_fds; struct file **fd; };
struct files_struct { struct fdtable *fdt; };
struct fs_struct { struct path pwd; };
typedef struct { int counter; } atomic_t;
struct signal_struct { atomic_t live; };
struct task_struct {
	unsigned int __state;
	int pid, tgid;
	struct fs_struct *fs;
	struct files_struct *files;
	struct signal_struct *signal;
};
struct task_struct___before_5_14 { long state; };
#if defined(__TARGET_ARCH_x86)
struct pt_regs { unsigned long di, si, dx, r10, r8, r9; };
#else
struct user_pt_regs { unsigned long regs[31]; };
#endif
#pragma clang attribute pop

// How a call is recorded, by its number: which argument (counted from 1) is a name, whether a directory stands before
// it, which one is a descriptor, whether the result is one, and whether it is always of interest.
struct role { __u8 name, second, at, descriptor, opens, closes, always; };

enum kind { CALL, WAKE, FORK, EXIT };

struct event {
	// Off the processor since the thread is known, and in this call: ready to run, or not.
	__u64 start, end, queued, blocked, queued_inside, blocked_inside;
	__s64 result;
	__u64 arguments[6];
	__u64 file, inode, position, base;
	__u32 device, base_device, flags, thread, process;
	__u16 mode, call, length, second_length;
	__u32 kind;
};
struct named { struct event event; char names[2 * NAME_MAX]; };

// A thread: the call it is in, and how long it was off its processor since the last event, and in this call.
struct thread {
	__u64 start, arguments[6], queued, blocked, queued_before, blocked_before, since, on, file;
	__u16 call;
	__u8 in_call, off, runnable;
};

// A process: followed, one that starts those that are followed, one that was followed until it ended.
enum { FOLLOWED = 1, STARTS = 2, GONE = 3 };

enum count { HANDLED, SENT, LOST, RUN_NS, UNTRACKED, COUNTS };

struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 8 << 20); } ring SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 16384); __type(key, __u32); __type(value, __u8); } watched SEC(".maps");
// What ended makes room by itself: it wakes others until the very end.
struct { __uint(type, BPF_MAP_TYPE_LRU_HASH); __uint(max_entries, 16384); __type(key, __u32); __type(value, struct thread); } threads SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, CALLS); __type(key, __u32); __type(value, struct role); } roles SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, COUNTS); __type(key, __u32); __type(value, __u64); } counts SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 1); __type(key, __u32); __type(value, struct named); } scratch SEC(".maps");

// The file system that is recorded, as the kernel numbers it.
const volatile __u32 DEVICE = 0;

static __always_inline void add(__u32 which, __u64 amount)
{
	__u64 *count = bpf_map_lookup_elem(&counts, &which);
	if (count)
		*count += amount;
}

static __always_inline void send(void *event, __u64 size)
{
	add(SENT, 1);
	// The reader looks every few milliseconds: waking it would cost more than the event.
	if (bpf_ringbuf_output(&ring, event, size, BPF_RB_NO_WAKEUP))
		add(LOST, 1);
}

static __always_inline __u8 watching(__u32 process)
{
	__u8 *how = bpf_map_lookup_elem(&watched, &process);
	return how ? *how : 0;
}

static __always_inline bool followed(__u32 process)
{
	return watching(process) & FOLLOWED;
}

static __always_inline struct thread *known(__u32 id)
{
	return bpf_map_lookup_elem(&threads, &id);
}

static __always_inline struct file *file_of(__s32 descriptor)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct file *file = 0, **table;
	if (descriptor < 0)
		return 0;
	table = BPF_CORE_READ(task, files, fdt, fd);
	if ((__u32)descriptor >= BPF_CORE_READ(task, files, fdt, max_fds))
		return 0;
	bpf_probe_read_kernel(&file, sizeof(file), table + descriptor);
	return file;
}

static __always_inline __u32 device_of(struct file *file)
{
	return BPF_CORE_READ(file, f_inode, i_sb, s_dev);
}

SEC("tp_btf/sys_enter") int BPF_PROG(call_begins, struct pt_regs *regs, long number)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 id = ids;
	if (!followed(ids >> 32))
		return 0;
	add(HANDLED, 1);
	struct thread *thread = known(id);
	if (!thread) {
		struct thread first = { .on = bpf_ktime_get_ns() };
		if (bpf_map_update_elem(&threads, &id, &first, BPF_ANY))
			add(UNTRACKED, 1);
		thread = known(id);
		if (!thread)
			return 0;
	}
#if defined(__TARGET_ARCH_x86)
	thread->arguments[0] = regs->di;
	thread->arguments[1] = regs->si;
	thread->arguments[2] = regs->dx;
	thread->arguments[3] = regs->r10;
	thread->arguments[4] = regs->r8;
	thread->arguments[5] = regs->r9;
#else
	for (int i = 0; i < 6; i++)
		thread->arguments[i] = BPF_CORE_READ((struct user_pt_regs *)regs, regs[i]);
#endif
	__u32 call = number >= 0 && number < CALLS ? number : CALLS - 1;
	struct role *role = bpf_map_lookup_elem(&roles, &call);
	thread->file = 0;
	if (role && role->closes) {
		// The descriptor is gone when the call ends.
		struct file *file = file_of((__s32)thread->arguments[0]);
		if (file && device_of(file) == DEVICE)
			thread->file = (__u64)file;
	}
	thread->call = call;
	thread->queued_before = thread->queued;
	thread->blocked_before = thread->blocked;
	thread->in_call = 1;
	thread->off = 0;
	thread->start = bpf_ktime_get_ns();
	return 0;
}

// Where a name begins that is not absolute.
static __always_inline void base(struct event *event, __s32 descriptor)
{
	struct inode *inode;
	if (descriptor == AT_FDCWD) {
		struct task_struct *task = bpf_get_current_task_btf();
		inode = BPF_CORE_READ(task, fs, pwd.dentry, d_inode);
	} else {
		struct file *file = file_of(descriptor);
		inode = file ? BPF_CORE_READ(file, f_inode) : 0;
	}
	if (!inode)
		return;
	event->base = BPF_CORE_READ(inode, i_ino);
	event->base_device = BPF_CORE_READ(inode, i_sb, s_dev);
}

static __always_inline void file_facts(struct event *event, struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	event->file = (__u64)file;
	event->flags = BPF_CORE_READ(file, f_flags);
	event->position = BPF_CORE_READ(file, f_pos);
	event->inode = BPF_CORE_READ(inode, i_ino);
	event->mode = BPF_CORE_READ(inode, i_mode);
	event->device = device_of(file);
}

static __always_inline __u64 argument(struct thread *thread, __u8 at)
{
	__u32 from_zero = at - 1;
	return from_zero < 6 ? thread->arguments[from_zero] : 0;
}

// Whether the call is about the file system that is recorded, and the facts of its file.
static __always_inline int of_interest(struct event *event, struct thread *thread, struct role *role)
{
	if (role->closes) {
		event->file = thread->file;
		return thread->file != 0;
	}
	if ((role->opens && event->result >= 0) || role->descriptor) {
		__s32 at = role->opens ? event->result : (__s32)argument(thread, role->descriptor);
		struct file *file = file_of(at);
		if (file)
			file_facts(event, file);
		if (file && event->device == DEVICE)
			return 1;
		if (!role->name || file)
			return role->always;
	}
	return role->name || role->always;
}

// Length of a name that was read; 0 of one that was not, or is too long.
static __always_inline __u64 name_length(long got)
{
	if (got < 0)
		got = 0;
	// In the open: the compiler knows that it is below already, and some kernels see that only here (6.12).
	asm volatile("%0 &= %1" : "+r"(got) : "i"(NAME_MAX - 1));
	return got;
}

static __always_inline void read_names(struct named *named, struct thread *thread, struct role *role)
{
	struct event *event = &named->event;
	__u64 length = name_length(bpf_probe_read_user_str(named->names, NAME_MAX, (void *)argument(thread, role->name)));
	event->length = length;
	base(event, role->at ? (__s32)argument(thread, role->name - 1) : AT_FDCWD);
	if (!role->second)
		return;
	event->second_length = name_length(bpf_probe_read_user_str(named->names + length, NAME_MAX, (void *)argument(thread, role->second)));
}

// Where a thread is: in its call, and off its processor.
static __always_inline void whereabouts(struct event *event, struct thread *thread)
{
	event->start = thread->in_call ? thread->start : event->end;
	event->queued = thread->queued;
	event->blocked = thread->blocked;
	if (!thread->in_call)
		return;
	event->queued_inside = thread->queued - thread->queued_before;
	event->blocked_inside = thread->blocked - thread->blocked_before;
	event->call = thread->call;
}

SEC("tp_btf/sys_exit") int BPF_PROG(call_ends, struct pt_regs *regs, long result)
{
	__u64 now = bpf_ktime_get_ns(), ids = bpf_get_current_pid_tgid();
	__u32 id = ids, zero = 0, number;
	struct thread *thread = known(id);
	if (!thread || !thread->in_call)
		return 0;
	number = thread->call;
	struct role *role = bpf_map_lookup_elem(&roles, &number);
	struct named *named = bpf_map_lookup_elem(&scratch, &zero);
	if (!role || !named)
		return 0;
	struct event *event = &named->event;
	__builtin_memset(event, 0, sizeof(*event));
	event->result = result;
	if (!of_interest(event, thread, role) && !thread->off) {
		thread->in_call = 0;
		return 0;
	}
	event->end = now;
	whereabouts(event, thread);
	thread->in_call = 0;
	__builtin_memcpy(event->arguments, thread->arguments, sizeof(event->arguments));
	event->thread = id;
	event->process = ids >> 32;
	event->kind = CALL;
	if (role->name)
		read_names(named, thread, role);
	__u64 size = sizeof(*event) + event->length + event->second_length;
	send(named, size < sizeof(*named) ? size : sizeof(*named));
	return 0;
}

// The call that wakes is the cause only while it is one: an interrupt finds any thread.
SEC("tp_btf/sched_waking") int BPF_PROG(woken, struct task_struct *task)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 id = ids;
	if (task->pid == id || !followed(task->tgid) || !followed(ids >> 32))
		return 0;
	add(HANDLED, 1);
	struct thread *waker = known(id), *sleeper = known(task->pid);
	if (!waker || !waker->in_call || !sleeper || !sleeper->in_call)
		return 0;
	struct event event = {};
	event.end = bpf_ktime_get_ns();
	whereabouts(&event, waker);
	event.thread = id;
	event.process = ids >> 32;
	event.result = task->pid;
	event.kind = WAKE;
	send(&event, sizeof(event));
	return 0;
}

SEC("tp_btf/sched_process_fork") int BPF_PROG(forked, struct task_struct *parent, struct task_struct *child)
{
	__u32 of = parent->tgid, process = child->tgid, id = parent->pid;
	__u32 new = child->pid;
	__u8 how = watching(of), yes = FOLLOWED;
	if (!how || (how == STARTS && of == process)) {
		// The number of a process that is gone.
		if (of != process)
			bpf_map_delete_elem(&watched, &process);
		return 0;
	}
	add(HANDLED, 1);
	// It waits for a processor from now on: that is no computing of its own.
	struct thread waiting = { .since = bpf_ktime_get_ns(), .runnable = 1 };
	bpf_map_update_elem(&threads, &new, &waiting, BPF_ANY);
	if (of != process && bpf_map_update_elem(&watched, &process, &yes, BPF_ANY))
		add(UNTRACKED, 1);
	struct event event = {};
	struct thread *thread = known(id);
	event.end = bpf_ktime_get_ns();
	event.start = event.end;
	if (thread)
		whereabouts(&event, thread);
	event.thread = id;
	event.process = of;
	event.result = new;
	event.arguments[0] = process;
	// A process that is not recorded itself starts the command.
	event.arguments[1] = how;
	event.kind = FORK;
	send(&event, sizeof(event));
	return 0;
}

SEC("tp_btf/sched_process_exit") int BPF_PROG(ended, struct task_struct *task)
{
	__u32 process = task->tgid, id = task->pid;
	__u8 gone = GONE;
	if (watching(process) != FOLLOWED)
		return 0;
	add(HANDLED, 1);
	struct event event = { .end = bpf_ktime_get_ns(), .thread = id, .process = process, .kind = EXIT };
	struct thread *thread = known(id);
	event.start = event.end;
	if (thread)
		whereabouts(&event, thread);
	send(&event, sizeof(event));
	if (BPF_CORE_READ(task, signal, live.counter) == 0)
		bpf_map_update_elem(&watched, &process, &gone, BPF_ANY);
	return 0;
}

static __always_inline int is_runnable(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state) == 0;
	return BPF_CORE_READ((struct task_struct___before_5_14 *)task, state) == 0;
}

SEC("tp_btf/sched_switch") int BPF_PROG(switched, bool preempt, struct task_struct *from, struct task_struct *to)
{
	__u64 now = bpf_ktime_get_ns();
	struct thread *thread = known(from->pid);
	if (thread) {
		add(HANDLED, 1);
		thread->since = now;
		thread->runnable = preempt || is_runnable(from);
		// Nothing is known of when one began that was never seen on a processor.
		if (thread->on && now > thread->on)
			add(RUN_NS, now - thread->on);
	}
	thread = known(to->pid);
	if (!thread)
		return 0;
	thread->on = now;
	if (!thread->since || now < thread->since)
		return 0;
	if (thread->runnable) {
		thread->queued += now - thread->since;
	} else {
		thread->blocked += now - thread->since;
		thread->off = thread->in_call;
	}
	thread->since = 0;
	return 0;
}
