//! What kernels cost in instructions for a byte, which is the same from run to run and on a busy
//! machine: `cargo bench -p marline-fec --bench instructions`.
//!
//! Here: by callgrind (`valgrind`), which knows all of x86-64 but GFNI. For AArch64 by QEMU in user
//! mode, which runs one instruction at a time and writes a line for each; in Debian, with
//! `qemu-user` and `gcc-aarch64-linux-gnu`:
//!
//! ```sh
//! target=aarch64-unknown-linux-gnu
//! rustup target add $target
//! export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
//! export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
//! cargo bench -p marline-fec --bench instructions --target $target
//! ```
//!
//! An operation is done 10 and 20 times; half of the difference of what these take, in tens, is
//! what it costs. More than [`LIMITS`] is an error.

#![allow(clippy::print_stdout, reason = "a benchmark reports on stdout")]

mod common;

use std::error::Error;
use std::hint::black_box;
use std::process::Command;

use common::bytes;
use marline_fec::gf256::{Kernel, supported};

/// A datagram's payload (bytes).
const LEN: usize = 1400;
/// Symbols that a repair symbol combines.
const TERMS: usize = 64;
const OPERATIONS: [&str; 2] = ["mad", "dot"];
/// Kernel, and instructions for 64 bytes of a source that `mad` and `dot` may take: a twentieth
/// more than they did on 30 November 2026, built by Rust 1.95.
const LIMITS: [(&str, [f64; 2]); 3] = [
    ("avx2", [31.4, 25.2]),
    ("ssse3", [73.5, 58.0]),
    ("neon", [52.5, 39.7]),
];
/// Bytes for which costs are shown: a vector of the widest kernel.
const UNIT: f64 = 64.0;

/// What is counted: `operation` with `kernel`, done `times` times.
fn work(kernel: &dyn Kernel, operation: &str, times: usize) {
    let (mut dst, src) = (bytes(LEN, 1), bytes(LEN, 2));
    let terms: Vec<(u8, &[u8])> = (7..).take(TERMS).map(|c| (c, &src[..])).collect();
    for _ in 0..times {
        match operation {
            "mad" => kernel.mad(black_box(&mut dst), black_box(&src), 29),
            _ => kernel.dot(black_box(&mut dst), black_box(&terms)),
        }
    }
}

/// Instructions of this program with these arguments.
fn instructions(arguments: &[&str]) -> Result<u64, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    if cfg!(target_arch = "aarch64") {
        let log = std::env::temp_dir().join(format!("marline-{}", std::process::id()));
        // -singlestep: a block is one instruction; nochain: each block that runs is logged.
        let ran = Command::new("qemu-aarch64")
            .args([
                "-L",
                "/usr/aarch64-linux-gnu",
                "-singlestep",
                "-d",
                "nochain,exec",
                "-D",
            ])
            .arg(&log)
            .arg(program)
            .args(arguments)
            .status()?;
        let logged = std::fs::read(&log)?;
        std::fs::remove_file(log)?;
        if !ran.success() {
            return Err("qemu-aarch64 failed".into());
        }
        return Ok(logged.iter().filter(|byte| **byte == b'\n').count() as u64);
    }
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(arguments)
        .output()?;
    let said = String::from_utf8_lossy(&ran.stderr);
    let counted = said
        .lines()
        .find_map(|line| line.split("Collected : ").nth(1));
    let counted = counted.ok_or_else(|| format!("valgrind counted nothing: {said}"))?;
    Ok(counted.trim().parse()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    if let [name, operation, times] = &arguments[..] {
        let kernels = supported();
        let kernel = kernels
            .iter()
            .find(|kernel| kernel.name() == name)
            .ok_or("no such kernel")?;
        work(*kernel, operation, times.parse()?);
        return Ok(());
    }
    println!("instructions for {UNIT} bytes of a source: mad, dot of {TERMS}");
    let mut dearer = Vec::new();
    for kernel in supported() {
        let name = kernel.name();
        let Some((_, limits)) = LIMITS.iter().find(|(known, _)| *known == name) else {
            continue;
        };
        let mut costs = [0.0; 2];
        for ((operation, limit), cost) in OPERATIONS.iter().zip(limits).zip(&mut costs) {
            let [ten, twenty] = ["10", "20"].map(|times| instructions(&[name, operation, times]));
            let sources = if *operation == "dot" { TERMS } else { 1 };
            *cost = (twenty? - ten?) as f64 / 10.0 / (sources * LEN) as f64 * UNIT;
            if *cost > *limit {
                dearer.push(format!("{name} {operation}: {cost:.1} of at most {limit}"));
            }
        }
        println!("{name:8} {:8.1} {:8.1}", costs[0], costs[1]);
    }
    match dearer.is_empty() {
        true => Ok(()),
        false => Err(dearer.join(", ").into()),
    }
}
