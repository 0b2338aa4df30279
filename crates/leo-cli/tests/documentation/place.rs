//! The folder that a page's commands run in, with the files that pages talk about.
//!
//! What a page makes itself, by a command or by Python, is there from the beginning all the same, so that the commands
//! after it can run where Python cannot.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use leo_formats::ArrayFile;
use leo_formats::onnx::proto::{ModelProto, TensorProto};
use leo_formats::{Format, Model};
use leo_network::Array;
use leo_train::library;
use prost::Message;

use crate::support::{Anything, THREE, model, models, write_data};

/// The project's folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder for a page.
pub struct Place {
    folder: tempfile::TempDir,
    /// Whether the test images of MNIST are those of MNIST.
    pub mnist: bool,
}

impl Place {
    /// A new folder, with all files.
    pub fn new() -> Anything<Self> {
        let place = Self { folder: tempfile::tempdir()?, mnist: library::locate("mnist").is_ok() };
        copy_folder(&models(), &place.path("models"))?;
        copy_folder(&root().join("tools"), &place.path("tools"))?;
        fs::create_dir(place.path("programs"))?;
        std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin!("leo"), place.path("programs/leo"))?;
        let python = place.path("programs/python");
        fs::write(&python, "#!/bin/sh\nexec \"$LEO_PYTHON\" \"$@\"\n")?;
        fs::set_permissions(&python, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        write_data(&place.path("data/mnist"))?;
        place.networks()?;
        place.samples()?;
        Ok(place)
    }

    /// A file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn networks(&self) -> Anything {
        let shipped = model("100-100-l1-0.0005");
        fs::copy(&shipped, self.path("model.onnx"))?;
        fs::copy(models().join("digits.onnx"), self.path("exported.onnx"))?;
        fs::copy(models().join("digits.onnx"), self.path("pipeline.onnx"))?;
        fs::write(self.path("acas.nnet"), THREE)?;
        let bounds = (0..784).map(|x| format!("(assert (>= X_{x} 0))\n(assert (<= X_{x} 1))\n")).collect::<String>();
        let names = (0..784).map(|x| format!("(declare-const X_{x} Real)\n")).collect::<String>();
        fs::write(
            self.path("property.vnnlib"),
            names + "(declare-const Y_0 Real)\n" + &bounds + "(assert (>= Y_0 0))\n",
        )?;

        let mut normalised = proto(Path::new(&shipped))?;
        let graph = normalised.graph.as_mut().ok_or("a graph")?;
        let [weight, bias, ..] = &mut graph.initializer[..] else { return Err("weights and biases".into()) };
        let (w, b) = (numbers(weight)?, numbers(bias)?);
        let sums = w.chunks(784).map(|row| row.iter().sum::<f64>());
        let shifted = b.iter().zip(sums).map(|(b, sum)| b + sum * 0.1307);
        (weight.raw_data, bias.raw_data) = (raw(w.iter().map(|w| w * 0.3081)), raw(shifted));
        fs::write(self.path("normalised.onnx"), normalised.encode_to_vec())?;
        Ok(())
    }

    fn samples(&self) -> Anything {
        let test = if self.mnist { library::locate("mnist")? } else { self.path("data/mnist") };
        for name in ["t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"] {
            // Leo unpacks what is packed, and what Leo writes is not.
            let array = [name.to_owned(), format!("{name}.gz")]
                .map(|name| test.join(name))
                .into_iter()
                .find(|path| path.exists());
            let array = Array::load(&array.ok_or("test images")?)?;
            let extents = array.shape().iter().flat_map(|&extent| (extent as u32).to_be_bytes());
            let head = [0, 0, 8, array.shape().len() as u8].into_iter().chain(extents);
            fs::write(self.path(name), head.chain(array.iter().map(|byte| byte as u8)).collect::<Vec<u8>>())?;
        }
        let pixels = Array::load(&self.path("t10k-images-idx3-ubyte"))?;
        let normalised = pixels.iter().map(|pixel| ((pixel / 255.0 - 0.1307) / 0.3081) as f32).collect::<Vec<_>>();
        Array::new(vec![normalised.len() / 784, 784], normalised)?.save(&self.path("normalised.npy"))?;
        let few = pixels.iter().take(20 * 784).map(|pixel| (pixel / 255.0) as f32).collect::<Vec<_>>();
        for name in ["x.npy", "train.npy", "images.npy"] {
            Array::new(vec![20, 784], few.clone())?.save(&self.path(name))?;
        }
        let labels = Array::load(&self.path("t10k-labels-idx1-ubyte"))?.iter().take(20).collect::<Vec<f64>>();
        Array::new(vec![20], labels)?.save(&self.path("labels.npy"))?;
        Array::new(vec![784], vec![0.0_f32; 784])?.save(&self.path("lo.npy"))?;
        Array::new(vec![784], vec![1.0_f32; 784])?.save(&self.path("hi.npy"))?;
        Array::new(vec![2, 1], vec![0.75_f32, -2.0])?.save(&self.path("points.npy"))?;
        let digit = Array::load(&models().join("digits.npy"))?.iter().take(64).collect::<Vec<f64>>();
        Array::new(vec![1, 64], digit)?.save(&self.path("digit.npy"))?;
        Ok(())
    }

    /// What commands find in their environment.
    pub fn environment(&self) -> BTreeMap<&'static str, std::ffi::OsString> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([self.path("programs")].into_iter().chain(std::env::split_paths(&path)));
        BTreeMap::from([("PATH", path.expect("they were in a path")), (library::VARIABLE, self.path("data").into())])
    }
}

fn copy_folder(from: &Path, to: &Path) -> Anything {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target)?
        } else {
            fs::copy(entry.path(), target).map(drop)?
        }
    }
    Ok(())
}

fn proto(path: &Path) -> Anything<ModelProto> {
    match Model::load(path)?.format() {
        Format::Onnx(document) => Ok(document.model().clone()),
        _ => Err("not ONNX".into()),
    }
}

fn numbers(tensor: &TensorProto) -> Anything<Vec<f64>> {
    let raw = tensor.raw_data.as_ref().ok_or("raw data")?;
    Ok(raw.as_chunks().0.iter().map(|&bytes| f64::from(f32::from_le_bytes(bytes))).collect())
}

fn raw(numbers: impl Iterator<Item = f64>) -> Option<prost::bytes::Bytes> {
    Some(numbers.flat_map(|number| (number as f32).to_le_bytes()).collect::<Vec<u8>>().into())
}
