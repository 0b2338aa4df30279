//! Small files that ask for much memory: refused, or read with a small multiple of their size.

use std::alloc::System;
use std::io::Write;

use cap::Cap;
use flate2::{Compression, write::GzEncoder};
use leo_check::Certificate;
use leo_formats::read_text_file;

type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Allocations beyond half a gibibyte fail, and a failed allocation ends the test.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, 1 << 29);

/// The beginning of a certificate that says nothing, but says it at length: points follow.
const HEAD: &str = r#"{"format": "leo certificate", "version": 1, "first": "", "second": "",
    "domain": {"inputs": 1, "lo": 0.0, "hi": 1.0}, "delta": [0.0], "links": [{"layers": [], "roles": [], "points": ["#;
/// What comes after the points.
const END: &str = "]}]}";

/// Writes a certificate of `points` points that are nothing.
fn write(out: &mut impl Write, points: usize) -> std::io::Result<()> {
    write!(out, "{HEAD}")?;
    let many = b"[],".repeat(1 << 12);
    for _ in 0..points >> 12 {
        out.write_all(&many)?;
    }
    write!(out, "[]{END}")
}

/// Hardly a hundred kilobytes of gzip unpack to a hundred megabytes of empty lists, for which `leo check` took three
/// gigabytes.
#[test]
fn a_packed_certificate_takes_no_gigabytes() -> Anything {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("bomb.leo");
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    write(&mut packed, 32 << 20)?;
    let packed = packed.finish()?;
    assert!(packed.len() < 100_000, "{}", packed.len());
    std::fs::write(&path, &packed)?;
    let error = read_text_file(&path).expect_err("nobody packs certificates like that").to_string();
    assert!(error.contains("bomb.leo: unpacks to more than 32 times its size"), "{error}");

    // What is not packed so well is read, with a small multiple of its size.
    let mut plain = Vec::new();
    write(&mut plain, 4 << 20)?;
    assert!(Certificate::from_bytes(&plain).is_ok());
    Ok(())
}

/// Packed as people pack them, certificates are read as ever.
#[test]
fn an_ordinary_packed_certificate_is_read() -> Anything {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("small.leo.gz");
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    write(&mut packed, 1 << 16)?;
    std::fs::write(&path, packed.finish()?)?;
    assert!(Certificate::from_bytes(&read_text_file(&path)?).is_ok());
    Ok(())
}
