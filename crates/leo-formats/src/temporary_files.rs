//! What must not stay behind when a program is stopped: files and folders that are only on the way to something.
//!
//! Whoever is dropped cleans up after itself. A program that ends in the middle, because of Ctrl-C, drops nothing; so
//! what is unfinished is listed here.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The files and folders that are unfinished now.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn list() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file or folder that goes with [`abandon_unfinished`], until this is dropped.
#[derive(Debug)]
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// Makes a file or folder that is unfinished from its first moment on. Whoever takes it apart in this order drops
    /// it before the entry.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn begin<T: AsRef<Path>, E>(make: impl FnOnce() -> Result<T, E>) -> Result<(Self, T), E> {
        let mut list = list();
        let made = make()?;
        let path = made.as_ref().to_owned();
        list.push(path.clone());
        Ok((Self(path), made))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        list().retain(|path| *path != self.0);
    }
}

/// Held while files that belong together get their names.
static NAMING_LOCK: Mutex<()> = Mutex::new(());

/// As long as this is held, the program does not end in the middle: files that belong together get their names.
pub(crate) fn naming() -> MutexGuard<'static, ()> {
    NAMING_LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all that is unfinished, for a program that is about to end. Threads that would begin or finish something
/// from now on wait for ever.
pub fn abandon_unfinished() {
    std::mem::forget(naming());
    let list = list();
    for path in list.iter() {
        // What has just been finished or removed is not there any more, and nobody is left to tell about the rest.
        drop(std::fs::remove_file(path).or_else(|_| std::fs::remove_dir_all(path)));
    }
    std::mem::forget(list);
}
