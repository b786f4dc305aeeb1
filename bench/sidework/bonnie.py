"""bonnie++ 2.00: rates, processor and longest operations of all twelve columns."""

PER_CALL = ("a system call on a file costs a process with threads 50 to 60 ns more, because the file and its "
            "position are locked (3 million calls of one byte in a program of a few lines: write 480 against "
            "540 ns, read 305 against 360); the original has no threads, and each character is a call")
WHY = {"putc": PER_CALL, "getc": PER_CALL, "whole run, processor": PER_CALL,
       "whole run, s": "the original pauses three seconds before its seeks; stackrace's seekers wait for each other"}
NEEDS = ["bonnie++"]
GIB = 4
COLUMNS = ["putc", "put_block", "rewrite", "getc", "get_block", "seeks",
           "seq_create", "seq_stat", "seq_del", "ran_create", "ran_stat", "ran_del"]


def number(field):
    return float(field) if field and "+" not in field else None


def cases(stackrace, ground):
    options = ["-q", "-u", "root", "-d", ".", "-r", "1024", "-m", "host", "-z", "1", "-s", "2g", "-n", "64"]

    def once(*program):
        elapsed, cpu, text = ground.timed([*program, *options], cwd=ground.place)
        fields = next(line for line in text.splitlines() if line.startswith("1.98,")).split(",")
        found = {"whole run, s": elapsed, "whole run, processor s": cpu}
        for at, name in enumerate(COLUMNS):
            rate = (9 if at < 6 else 14) + 2 * at
            found[name] = number(fields[rate])
            found[name + " cpu"] = number(fields[rate + 1])
        return found
    return {"-s 2g -n 64": (lambda: once("bonnie++"), lambda: once(stackrace, "bonnie++"))}
