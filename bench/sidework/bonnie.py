"""bonnie++ 2.00: rates, processor and longest operations of all twelve columns."""

WHY = {"whole run, s": "the original pauses three seconds before its seeks; stackrace's seekers wait for each other"}
NEEDS = ["bonnie++"]
GIB = 4
COLUMNS = ["putc", "put_block", "rewrite", "getc", "get_block", "seeks",
           "seq_create", "seq_stat", "seq_del", "ran_create", "ran_stat", "ran_del"]


def number(field):
    return float(field) if field and "+" not in field else None


def cases(stackrace, ground):
    shared = ["-q", "-u", "root", "-d", ".", "-m", "host", "-z", "1"]

    def once(*words):
        elapsed, cpu, text = ground.timed(list(words), cwd=ground.place)
        fields = next(line for line in text.splitlines() if line.startswith("1.98,")).split(",")
        found = {"whole run, s": elapsed, "whole run, processor s": cpu}
        for at, name in enumerate(COLUMNS):
            rate = (9 if at < 6 else 14) + 2 * at
            found[name] = number(fields[rate])
            found[name + " cpu"] = number(fields[rate + 1])
        return found

    def pair(*sizes):
        options = [*shared, *sizes]
        return lambda: once("bonnie++", *options), lambda: once(stackrace, "bonnie++", *options)
    # The second one is short: the characters, twice as many as usual, and little else.
    return {"-s 2g -n 64": pair("-r", "1024", "-s", "2g", "-n", "64"),
            "-s 16 -n 0 -f6": pair("-r", "8", "-s", "16", "-n", "0", "-f6")}
