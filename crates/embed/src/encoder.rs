//! The encoder: word pieces to a vector.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, NdTensorView};

use crate::model::{EmbedError, Vector};
use crate::onnx;
use crate::wordpiece::Vocabulary;

/// Most word pieces of a text, with the marks of begin and end. The model was trained with as many; what follows is not
/// read.
const MAX_PIECES: usize = 256;
/// Most bytes of a text: more than its first [`MAX_PIECES`] pieces have in any language.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// Most bytes of a file with weights; the full model has 91 MB.
const MAX_WEIGHTS_BYTES: u64 = 512 * 1024 * 1024;
/// Most numbers of a vector; all-MiniLM-L6-v2 has 384.
const MAX_WIDTH: usize = 4096;
/// Most threads that work on a text. It has few pieces, so that more threads do not help.
const MOST_THREADS: usize = 4;

/// A model that is in memory.
pub struct Embedder {
    path: PathBuf,
    model: Model,
    vocabulary: Vocabulary,
    inputs: Inputs,
    output: NodeId,
    threads: Arc<ThreadPool>,
    checksum: u32,
    width: usize,
}

struct Inputs {
    pieces: NodeId,
    mask: NodeId,
    /// Which of two texts a piece belongs to. Some files have no such input.
    segments: Option<NodeId>,
}

impl Embedder {
    /// Reads a model: `weights` is an ONNX file, `vocabulary` its `vocab.txt`. Takes about 0.1 s and, for the
    /// quantised model, 45 to 75 MB.
    ///
    /// # Errors
    /// [`EmbedError`].
    pub fn load(weights: &Path, vocabulary: &Path) -> Result<Self, EmbedError> {
        let vocabulary = Vocabulary::load(vocabulary)?;
        let unreadable = |source| EmbedError::Unreadable { path: weights.to_owned(), source };
        let malformed =
            |problem: String| EmbedError::Malformed { path: weights.to_owned(), problem };
        let mut file = myclaw_files::open_regular(weights).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.len() > MAX_WEIGHTS_BYTES {
            return Err(malformed(format!("it has more than {MAX_WEIGHTS_BYTES} bytes")));
        }
        let checksum = hash(&mut file).map_err(unreadable)?;
        file.rewind().map_err(unreadable)?;
        let loaded = unwound(|| onnx::load(file, ModelOptions::with_ops(operators())));
        let model = loaded.map_err(&malformed)?;
        let input = |name: &str| {
            model.node_id(name).map_err(|_| malformed(format!("it has no input {name}")))
        };
        let inputs = Inputs {
            pieces: input("input_ids")?,
            mask: input("attention_mask")?,
            segments: model.find_node("token_type_ids"),
        };
        let output =
            model.find_node("last_hidden_state").or_else(|| model.output_ids().first().copied());
        let output = output.ok_or_else(|| malformed("it has no output".to_owned()))?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        let threads = Arc::new(ThreadPool::with_num_threads(threads));
        let path = weights.to_owned();
        let mut embedder =
            Self { path, model, vocabulary, inputs, output, threads, checksum, width: 0 };
        // A file that is no encoder is noticed here and not in the middle of a search.
        embedder.width = embedder.embed("test")?.len();
        Ok(embedder)
    }

    /// A name for these weights, so that vectors of others can be told apart.
    pub fn identity(&self) -> String {
        let name = self.path.file_stem().unwrap_or_default().to_string_lossy();
        format!("{name}-{}-{:08x}", self.width, self.checksum)
    }

    /// The vector of a text. Of long texts only the beginning counts: 256 word pieces.
    ///
    /// # Errors
    /// [`EmbedError::Malformed`]: the model computes something else than an encoder.
    pub fn embed(&self, text: &str) -> Result<Vector, EmbedError> {
        let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
        let pieces = self.vocabulary.encode(text, MAX_PIECES);
        let result = unwound(|| self.run(pieces));
        result.map_err(|problem| EmbedError::Malformed { path: self.path.clone(), problem })
    }

    fn run(&self, pieces: Vec<i32>) -> Result<Vector, String> {
        let shape = [1, pieces.len()];
        let filled = |number: i32| NdTensor::from_data(shape, vec![number; shape[1]]);
        let mut inputs = vec![(self.inputs.mask, filled(1).into())];
        if let Some(segments) = self.inputs.segments {
            inputs.push((segments, filled(0).into()));
        }
        inputs.push((self.inputs.pieces, NdTensor::from_data(shape, pieces).into()));
        let options = RunOptions::default().with_thread_pool(Some(Arc::clone(&self.threads)));
        let [output] = self
            .model
            .run_n(inputs, [self.output], Some(options))
            .map_err(|error| error.to_string())?;
        let states: NdTensor<f32, 3> = output
            .try_into()
            .map_err(|_| "its output is not one vector for each word piece".to_owned())?;
        let [texts, rows, width] = states.shape();
        if (texts, rows) != (1, shape[1]) || !(1..=MAX_WIDTH).contains(&width) {
            return Err(format!("its output has the shape {texts} x {rows} x {width}"));
        }
        pooled(states.slice(0)).ok_or_else(|| "it computes numbers without a value".to_owned())
    }
}

/// The mean of the rows, with the length 1. `None` if there is none because a number is infinite or undefined.
fn pooled(states: NdTensorView<'_, f32, 2>) -> Option<Vector> {
    let [rows, width] = states.shape();
    let mut mean = vec![0.0_f32; width];
    for row in 0..rows {
        for (sum, number) in mean.iter_mut().zip(states.slice(row).iter()) {
            *sum += *number;
        }
    }
    let length = mean.iter().map(|number| number * number).sum::<f32>().sqrt();
    if !length.is_finite() || length <= 0.0 {
        return None;
    }
    mean.iter_mut().for_each(|number| *number /= length);
    Some(mean.into())
}

/// The operators that exports of BERT use, with weights as numbers of 32 bits and quantised. Others would be in the
/// binary as well if they were named.
fn operators() -> rten::OpRegistry {
    rten::op_registry!(
        Add,
        And,
        Cast,
        Concat,
        ConstantOfShape,
        DequantizeLinear,
        Div,
        DynamicQuantizeLinear,
        Equal,
        Erf,
        Expand,
        Gather,
        GatherND,
        Gelu,
        Gemm,
        Greater,
        GreaterOrEqual,
        Identity,
        IsNaN,
        LayerNormalization,
        Less,
        LessOrEqual,
        MatMul,
        MatMulInteger,
        Max,
        Min,
        Mul,
        Neg,
        Not,
        Or,
        Pow,
        Range,
        ReduceMean,
        Reshape,
        Shape,
        Slice,
        Softmax,
        Sqrt,
        Squeeze,
        Sub,
        Tanh,
        Transpose,
        Unsqueeze,
        Where
    )
}

/// Does `work`; a panic of the inference library becomes an error, because a damaged file must not end the program.
fn unwound<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("the inference library failed on it".to_owned()))
}

/// A checksum of a file.
fn hash(file: &mut File) -> std::io::Result<u32> {
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize()),
            length => hasher.update(&buffer[..length]),
        }
    }
}

#[cfg(test)]
mod tests;
