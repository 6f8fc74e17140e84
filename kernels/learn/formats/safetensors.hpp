// Reads and writes safetensors, the file of named tensors in which models are exchanged.
//   N u64 little-endian; a header of N bytes: a JSON object, spaces after it; then the tensors.
// The header gives each tensor's dtype, shape and data_offsets [begin, end) from the end of the
// header. `__metadata__` is an object of strings. Tensors cover the rest of the file without holes
// and overlaps, are row-major and little-endian. Scalars (shape []) and empty tensors are allowed.
// The reader keeps the header in memory and takes tensors from the file one by one.
// Source: https://github.com/huggingface/safetensors, README, "Format".
// Thread safety: a reader may be used by several threads.
#pragma once

#include "kernels/base/descriptor.hpp"
#include "kernels/base/result.hpp"
#include "kernels/learn/formats/named_tensor.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::learn {

/// A longer header is refused before memory is taken for it.
inline constexpr std::uint64_t safetensors_header_most = 100'000'000;

enum class tensor_dtype : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  f8_e4m3,
  f8_e5m2,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean
};
/// The name in the file: 'F32'.
std::string_view to_string(tensor_dtype type) noexcept;
std::size_t bytes_of(tensor_dtype type) noexcept;

/// Where one tensor lies. `begin` and `end` count from the end of the header.
struct stored_tensor {
  std::string name;
  tensor_dtype type = tensor_dtype::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;
  std::uint64_t elements() const noexcept { return (end - begin) / bytes_of(type); }
};

class safetensors {
public:
  /// Errors: no such file. A header that is truncated, longer than safetensors_header_most, or no
  /// JSON. A repeated name, an unknown dtype, or a shape that does not fit its offsets. A hole, an
  /// overlap, or bytes after the last tensor.
  static result<safetensors> open(const std::filesystem::path& path);
  /// The same from memory. Errors call it `name`.
  static result<safetensors> from_bytes(std::vector<std::byte> bytes, std::string name);

  /// In the order in which they lie in the file; those at one offset by their names.
  const std::vector<stored_tensor>& tensors() const noexcept { return tensors_; }
  const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }
  /// Null if there is none.
  const stored_tensor* find(std::string_view name) const noexcept;

  /// The bytes of a tensor [end - begin]. Requires: tensors() has this entry.
  /// Errors: the file became shorter, or cannot be read.
  result<std::vector<std::byte>> read(const stored_tensor& of) const;
  /// The values as float32. F64 is rounded, F16 and BF16 are exact. Requires: as above.
  /// Errors: as above, or whole numbers and FP8, which are no weights here.
  result<std::vector<float>> read_floats(const stored_tensor& of) const;
  /// The tensor `name`, which must have this shape. Errors: as above, no such tensor, another
  /// shape (both are named).
  result<named_tensor> take(std::string_view name, std::span<const std::int64_t> shape) const;

private:
  result<void> read_header();
  result<void> fetch(std::uint64_t from, std::span<std::byte> to) const;
  failure refused(const std::string& why) const;

  std::string name_;
  descriptor file_;
  std::vector<std::byte> bytes_; ///< the contents, when they are in memory
  std::uint64_t size_ = 0, data_from_ = 0;
  std::vector<stored_tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Writes float32 tensors in their order, and a header padded with spaces to a multiple of 8 bytes.
/// The same tensors give the same bytes. Requires: names are different, not empty and not
/// `__metadata__`; each tensor has as many values as its shape says.
/// Errors: the path and the system's reason. Nothing is left behind.
result<void>
write_safetensors(const std::filesystem::path& path, std::span<const named_tensor> tensors,
                  const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

/// A shape as text: '[64, 172]'.
std::string to_text(std::span<const std::int64_t> shape);

} // namespace shoal::learn
