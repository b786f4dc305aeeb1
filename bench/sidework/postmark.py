"""PostMark. It knows whole seconds only, so the time is that of the process, from outside."""

NEEDS = ["postmark"]
GIB = 1
CONFIGURATIONS = {
    "buffered": "set number 500\nset transactions 100000\n",
    "unbuffered, 10 subdirectories": "set number 500\nset transactions 20000\nset size 5120 65536\n"
    "set read 4096\nset write 4096\nset buffering false\nset subdirectories 10\n",
}


def cases(stackrace, ground):
    def once(words, *program):
        config = ground.work / "config"
        config.write_text(f"set location {ground.place}\n{words}run\nquit\n")
        elapsed, cpu, text = ground.timed([*program, config])
        counts = [line.split("(")[0].strip() for line in text.split("Files:")[1].splitlines() if "(" in line]
        return {"elapsed, s": elapsed, "processor, s": cpu, "=counts": counts}

    ours = [stackrace, "--store", ground.work / "store", "postmark"]
    return {title: (lambda words=words: once(words, "postmark"), lambda words=words: once(words, *ours))
            for title, words in CONFIGURATIONS.items()}
