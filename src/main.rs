#![forbid(unsafe_code)]
//! The program: see `stackrace::main`.

fn main() -> std::process::ExitCode {
    stackrace::main()
}
