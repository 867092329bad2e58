//! A model library of some hundred bytes, with everything that a real one has: metadata and shaders in
//! linear memory, imports, exports.

use wasm_encoder::{
    CodeSection, ConstExpr, CustomSection, DataSection, EntityType, ExportKind, ExportSection, Function,
    FunctionSection, ImportSection, Instruction, MemorySection, MemoryType, Module, TypeSection, ValType,
};

/// What the library is made of. The default is a good one.
#[derive(Debug, Clone)]
pub struct SmallLibrary {
    /// Descriptions in linear memory.
    pub metadata: Vec<String>,
    /// Kernels: name, source, and what it says of its buffers.
    pub kernels: Vec<(String, String, String)>,
    /// Functions: module and name.
    pub imports: Vec<(String, String)>,
    /// Functions besides the memory.
    pub exports: Vec<String>,
    /// The memory.
    pub memory: MemoryType,
    /// Whether the memory is the page's.
    pub imports_memory: bool,
    /// Bytes after which a data segment ends.
    pub segment: usize,
    /// More text in linear memory.
    pub text: String,
}

/// A kernel that reads one buffer and writes another.
pub const KERNEL: &str = "\
@group(0) @binding(0) var<storage, read> from_ptr : array<f32>;
@group(0) @binding(1) var<storage, read_write> to_ptr : array<f32>;
struct PODArgs {
  count: u32,
}
@group(0) @binding(2) var<uniform> podArgs : PODArgs;
var<workgroup> shared_values : array<f32, 64>;
@compute @workgroup_size(64, 1, 1)
fn copy_kernel(@builtin(global_invocation_id) at : vec3<u32>, @builtin(local_invocation_id) local : vec3<u32>) {
  shared_values[local.x] = from_ptr[at.x];
  if (at.x < podArgs.count) { to_ptr[at.x] = shared_values[local.x]; }
}
";

/// What a good library says of itself.
pub const METADATA: &str = r#"{"model_type": "qwen2", "quantization": "q4f32_1", "context_window_size": 256, "prefill_chunk_size": 64, "tensor_parallel_shards": 1, "max_batch_size": 1, "params": [{"name": "one.weight", "shape": [2, 4], "dtype": "float32"}, {"name": "two.weight", "shape": [8, "n"], "dtype": "uint32"}], "memory_usage": {"decode": 96, "prefill": 1024}}"#;

impl Default for SmallLibrary {
    fn default() -> Self {
        let owned = |text: &str| text.to_owned();
        Self {
            metadata: vec![owned(METADATA)],
            kernels: vec![(owned("copy_kernel"), owned(KERNEL), owned("paramWriteAccess:[0,1]"))],
            imports: vec![
                (owned("env"), owned("TVMFFIWasmSafeCall")),
                (owned("wasi_snapshot_preview1"), owned("fd_write")),
            ],
            exports: vec![owned("TVMFFIFunctionCall"), owned("_initialize")],
            memory: MemoryType { minimum: 4, maximum: Some(100), memory64: false, shared: false, page_size_log2: None },
            imports_memory: false,
            segment: usize::MAX,
            text: String::new(),
        }
    }
}

impl SmallLibrary {
    /// The module.
    pub fn bytes(&self) -> Vec<u8> {
        let mut types = TypeSection::new();
        types.ty().function([ValType::I32, ValType::I64], [ValType::I32]);
        types.ty().function([], []);
        let mut imports = ImportSection::new();
        for (module, name) in &self.imports {
            imports.import(module, name, EntityType::Function(0));
        }
        let mut memories = MemorySection::new();
        if self.imports_memory {
            imports.import("env", "memory", EntityType::Memory(self.memory));
        } else {
            memories.memory(self.memory);
        }
        let mut functions = FunctionSection::new();
        functions.function(1);
        let mut exports = ExportSection::new();
        exports.export("memory", ExportKind::Memory, 0);
        for name in &self.exports {
            exports.export(name, ExportKind::Func, u32::try_from(self.imports.len()).unwrap());
        }
        let mut body = Function::new([(1, ValType::I32)]);
        body.instruction(&Instruction::I32Const(200));
        body.instruction(&Instruction::I32Extend8S);
        body.instruction(&Instruction::LocalSet(0));
        body.instruction(&Instruction::End);
        let mut code = CodeSection::new();
        code.function(&body);
        let mut module = Module::new();
        module.section(&types).section(&imports).section(&functions);
        if !self.imports_memory {
            module.section(&memories);
        }
        module.section(&exports).section(&code).section(&self.data());
        module.section(&CustomSection { name: "producers".into(), data: b"\0"[..].into() });
        module.finish()
    }

    /// Linear memory from address 1024, cut into segments; the last part comes first in the section.
    fn data(&self) -> DataSection {
        let image = self.image();
        let mut parts: Vec<(usize, &[u8])> = Vec::new();
        let mut at = 0;
        for part in image.chunks(self.segment.min(image.len().max(1))) {
            parts.push((1024 + at, part));
            at += part.len();
        }
        let mut data = DataSection::new();
        for (address, part) in parts.iter().rev() {
            let offset = ConstExpr::i32_const(i32::try_from(*address).unwrap());
            let offset =
                if self.memory.memory64 { ConstExpr::i64_const(i64::try_from(*address).unwrap()) } else { offset };
            data.active(0, &offset, part.iter().copied());
        }
        data
    }

    fn image(&self) -> Vec<u8> {
        let mut image = b"some text\0".to_vec();
        let string = |image: &mut Vec<u8>, text: &str| {
            image.extend_from_slice(&(text.len() as u64).to_le_bytes());
            image.extend_from_slice(text.as_bytes());
        };
        for metadata in &self.metadata {
            image.extend_from_slice(metadata.as_bytes());
            // Something follows that is no part of it.
            image.extend_from_slice(b"}\0");
        }
        for (name, _, writes) in &self.kernels {
            string(&mut image, name);
            string(&mut image, name);
            image.extend_from_slice(&[2, 0, 0, 0, 0, 0, 0, 0, 3, 64, 1, 0, 3, 64, 1, 0]);
            string(&mut image, writes);
        }
        image.extend_from_slice(&(self.kernels.len() as u64).to_le_bytes());
        for (name, source, _) in &self.kernels {
            string(&mut image, name);
            string(&mut image, source);
        }
        // A length whose first byte looks like text.
        image.extend_from_slice(&u64::from(b')').to_le_bytes());
        image.extend_from_slice(self.text.as_bytes());
        image.push(0);
        image
    }
}
