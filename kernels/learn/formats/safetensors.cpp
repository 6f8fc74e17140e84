#include "kernels/learn/formats/safetensors.hpp"

#include "kernels/base/json_text.hpp"
#include "kernels/base/whole_number.hpp"
#include "kernels/learn/formats/json_words.hpp"
#include "kernels/learn/formats/whole_file.hpp"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

namespace shoal::learn {

namespace {

static_assert(std::endian::native == std::endian::little, "the file is little-endian");

using json = nlohmann::json;

constexpr std::uint64_t preamble = 8;
constexpr std::string_view metadata_key = "__metadata__";

struct dtype_row {
  tensor_dtype type;
  std::string_view name;
  std::size_t bytes;
};
constexpr std::array dtypes{
    dtype_row{tensor_dtype::f64, "F64", 8},         dtype_row{tensor_dtype::f32, "F32", 4},
    dtype_row{tensor_dtype::f16, "F16", 2},         dtype_row{tensor_dtype::bf16, "BF16", 2},
    dtype_row{tensor_dtype::f8_e4m3, "F8_E4M3", 1}, dtype_row{tensor_dtype::f8_e5m2, "F8_E5M2", 1},
    dtype_row{tensor_dtype::i64, "I64", 8},         dtype_row{tensor_dtype::i32, "I32", 4},
    dtype_row{tensor_dtype::i16, "I16", 2},         dtype_row{tensor_dtype::i8, "I8", 1},
    dtype_row{tensor_dtype::u64, "U64", 8},         dtype_row{tensor_dtype::u32, "U32", 4},
    dtype_row{tensor_dtype::u16, "U16", 2},         dtype_row{tensor_dtype::u8, "U8", 1},
    dtype_row{tensor_dtype::boolean, "BOOL", 1}};

const dtype_row& row_of(tensor_dtype type) noexcept {
  return dtypes[static_cast<std::size_t>(type)];
}

/// The bytes of a tensor; none if no memory could hold them.
std::optional<std::uint64_t> bytes_of_shape(const std::vector<std::int64_t>& shape,
                                            std::uint64_t each) {
  std::uint64_t out = each;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  for (const auto extent : shape)
    if (extent < 0 || __builtin_mul_overflow(out, static_cast<std::uint64_t>(extent), &out))
      return std::nullopt;
  return out;
}

float of_half(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16, rest = bits & 0x7fffu;
  if (rest >= 0x7c00u) // infinity and NaN
    return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  // The exponent's bias differs by 112. The product is exact for subnormal numbers, too.
  const float scaled = std::bit_cast<float>(rest << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
}

/// Calls `each` with every number of `from`, which is an array of T.
template <class T, class Each>
void for_each_number(std::span<const std::byte> from, Each each) {
  for (std::size_t at = 0; at + sizeof(T) <= from.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, from.data() + at, sizeof(T));
    each(value);
  }
}

/// `name` with what a terminal would take for commands replaced, and shortened.
std::string shown_name(std::string_view name) {
  std::string out(name.substr(0, 100));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  return out;
}

/// Reads one entry of the header. Throws json::exception if a key is missing or of another type.
result<stored_tensor> tensor_of(const std::string& name, const json& entry) {
  stored_tensor out;
  out.name = name;
  const auto complain = [&](const std::string& why) {
    return failure{"is no safetensors file: its tensor '" + shown_name(name) + "' " + why +
                   "; take another file"};
  };
  if (!entry.is_object()) return complain("is no JSON object");
  const auto& type = entry.at("dtype").get_ref<const std::string&>();
  const auto row = std::find_if(dtypes.begin(), dtypes.end(),
                                [&](const dtype_row& one) { return one.name == type; });
  if (row == dtypes.end()) return complain("has the unknown dtype '" + shown_name(type) + "'");
  out.type = row->type;
  for (const auto& extent : entry.at("shape").get_ref<const json::array_t&>())
    out.shape.push_back(whole_number<std::int64_t>(extent));
  const auto& offsets = entry.at("data_offsets").get_ref<const json::array_t&>();
  if (offsets.size() != 2) return complain("has data_offsets that are not two numbers");
  out.begin = whole_number<std::uint64_t>(offsets[0]);
  out.end = whole_number<std::uint64_t>(offsets[1]);
  if (out.begin > out.end) return complain("ends before it begins");
  const auto bytes = bytes_of_shape(out.shape, row->bytes);
  if (!bytes) return complain("has a shape that no memory can hold");
  if (*bytes != out.end - out.begin)
    return complain("has " + std::to_string(out.end - out.begin) + " bytes; its shape " +
                    to_text(out.shape) + " of " + type + " needs " + std::to_string(*bytes));
  return out;
}

} // namespace

std::string_view to_string(tensor_dtype type) noexcept {
  return row_of(type).name;
}
std::size_t bytes_of(tensor_dtype type) noexcept {
  return row_of(type).bytes;
}

std::string to_text(std::span<const std::int64_t> shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i)
    out += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return out + "]";
}

failure safetensors::refused(const std::string& why) const {
  return failure{"safetensors: '" + name_ + "' " + why};
}

result<safetensors> safetensors::open(const std::filesystem::path& path) {
  safetensors out;
  out.name_ = path.string();
  out.file_ = descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (out.file_.get() < 0)
    return out.refused(std::string("cannot be opened: ") + std::strerror(errno));
  struct stat about {};
  if (::fstat(out.file_.get(), &about) != 0 || !S_ISREG(about.st_mode))
    return out.refused("is not a file");
  out.size_ = static_cast<std::uint64_t>(about.st_size);
  if (auto read = out.read_header(); !read) return failure{read.error()};
  return out;
}

result<safetensors> safetensors::from_bytes(std::vector<std::byte> bytes, std::string name) {
  safetensors out;
  out.name_ = std::move(name);
  out.bytes_ = std::move(bytes);
  out.size_ = out.bytes_.size();
  if (auto read = out.read_header(); !read) return failure{read.error()};
  return out;
}

result<void> safetensors::fetch(std::uint64_t from, std::span<std::byte> to) const {
  if (from > size_ || to.size() > size_ - from) return refused("is truncated");
  if (file_.get() < 0) {
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(from), to.size(), to.begin());
    return {};
  }
  while (!to.empty()) {
    const auto got = ::pread(file_.get(), to.data(), to.size(), static_cast<off_t>(from));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refused(std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) return refused("ended while it was read");
    to = to.subspan(static_cast<std::size_t>(got));
    from += static_cast<std::uint64_t>(got);
  }
  return {};
}

result<void> safetensors::read_header() {
  std::uint64_t length = 0;
  if (size_ < preamble) return refused("is no safetensors file: it has less than 8 bytes");
  if (auto got = fetch(0, std::as_writable_bytes(std::span(&length, 1))); !got) return got;
  if (length > safetensors_header_most)
    return refused("is no safetensors file: its header would have " + std::to_string(length) +
                   " bytes; at most " + std::to_string(safetensors_header_most) + " are read");
  if (length > size_ - preamble)
    return refused("is truncated in its header: " + std::to_string(length) +
                   " bytes are announced, and the file has " + std::to_string(size_) +
                   "; copy it again");
  std::string text(length, '\0');
  if (auto got = fetch(preamble, std::as_writable_bytes(std::span(text))); !got) return got;
  if (!text.starts_with('{'))
    return refused("is no safetensors file: its header does not begin with '{'");
  data_from_ = preamble + length;

  std::string repeated;
  try {
    // The library keeps one of two equal keys, so the parser is watched for them.
    std::set<std::string> names;
    const auto header =
        json::parse(text, [&](int depth, json::parse_event_t event, const json& parsed) {
          if (event == json::parse_event_t::key && depth == 1 && repeated.empty())
            if (const auto& key = parsed.get_ref<const std::string&>(); !names.insert(key).second)
              repeated = key;
          return true;
        });
    if (!repeated.empty())
      return refused("is no safetensors file: it has the tensor '" + shown_name(repeated) +
                     "' twice");
    for (const auto& [name, entry] : header.items()) {
      if (name == metadata_key) {
        if (!entry.is_object()) return refused("has __metadata__ that is no JSON object");
        for (const auto& [key, value] : entry.items())
          metadata_[key] = value.get_ref<const std::string&>();
        continue;
      }
      auto tensor = tensor_of(name, entry);
      if (!tensor) return refused(tensor.error());
      tensors_.push_back(*std::move(tensor));
    }
  } catch (const json::exception& error) {
    return refused("has a header that cannot be understood (" +
                   shown_name(json_words(error.what())) + "); take another file");
  }

  std::sort(tensors_.begin(), tensors_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t end = 0;
  const stored_tensor* before = nullptr;
  for (const auto& tensor : tensors_) {
    if (tensor.begin > end)
      return refused("has a hole of " + std::to_string(tensor.begin - end) +
                     " bytes before tensor '" + shown_name(tensor.name) + "'; take another file");
    if (tensor.begin < end)
      return refused("has tensors that overlap: '" + shown_name(before->name) + "' and '" +
                     shown_name(tensor.name) + "'; take another file");
    end = tensor.end;
    before = &tensor;
  }
  if (const auto have = size_ - data_from_; end > have)
    return refused("is truncated: its tensors have " + std::to_string(end) +
                   " bytes, and the file has " + std::to_string(have) +
                   " after its header; copy it again");
  else if (end < have)
    return refused("has " + std::to_string(have - end) +
                   " bytes after its last tensor; copy it again, or take another file");
  return {};
}

const stored_tensor* safetensors::find(std::string_view name) const noexcept {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                  [&](const auto& tensor) { return tensor.name == name; });
  return found == tensors_.end() ? nullptr : &*found;
}

result<std::vector<std::byte>> safetensors::read(const stored_tensor& of) const {
  std::vector<std::byte> out(of.end - of.begin);
  if (auto got = fetch(data_from_ + of.begin, out); !got) return failure{got.error()};
  return out;
}

result<std::vector<float>> safetensors::read_floats(const stored_tensor& of) const {
  std::vector<float> out;
  if (of.type == tensor_dtype::f32) {
    out.resize(of.elements());
    if (auto got = fetch(data_from_ + of.begin, std::as_writable_bytes(std::span(out))); !got)
      return failure{got.error()};
    return out;
  }
  const auto bytes = read(of);
  if (!bytes) return failure{bytes.error()};
  out.reserve(of.elements());
  switch (of.type) {
  case tensor_dtype::f64:
    for_each_number<double>(*bytes, [&](double x) { out.push_back(static_cast<float>(x)); });
    return out;
  case tensor_dtype::f16:
    for_each_number<std::uint16_t>(*bytes, [&](std::uint16_t x) { out.push_back(of_half(x)); });
    return out;
  case tensor_dtype::bf16:
    for_each_number<std::uint16_t>(*bytes, [&](std::uint16_t x) {
      out.push_back(std::bit_cast<float>(std::uint32_t{x} << 16));
    });
    return out;
  default:
    return refused("has the tensor '" + shown_name(of.name) + "' of dtype " +
                   std::string(to_string(of.type)) +
                   "; weights are read from F64, F32, F16 and BF16");
  }
}

result<named_tensor> safetensors::take(std::string_view name,
                                       std::span<const std::int64_t> shape) const {
  const auto* tensor = find(name);
  if (tensor == nullptr) return refused("has no tensor '" + std::string(name) + "'");
  if (!std::equal(shape.begin(), shape.end(), tensor->shape.begin(), tensor->shape.end()))
    return refused("has the tensor '" + std::string(name) + "' of shape " + to_text(tensor->shape) +
                   "; the model needs " + to_text(shape));
  auto values = read_floats(*tensor);
  if (!values) return failure{values.error()};
  return named_tensor{tensor->name, tensor->shape, *std::move(values)};
}

result<void> write_safetensors(const std::filesystem::path& path,
                               std::span<const named_tensor> tensors,
                               const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  if (!metadata.empty()) header[std::string(metadata_key)] = metadata;
  std::uint64_t end = 0;
  for (const auto& tensor : tensors) {
    const auto bytes = bytes_of_shape(tensor.shape, sizeof(float));
    SHOAL_CHECK(!tensor.name.empty() && tensor.name != metadata_key &&
                    !header.contains(tensor.name),
                "each tensor has a name of its own");
    SHOAL_CHECK(bytes == tensor.values.size() * sizeof(float), "a tensor fills its shape");
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {end, end + *bytes}}};
    end += *bytes;
  }
  // Invalid UTF-8 in a note is replaced and throws nothing.
  auto text = clean_json_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(&length, 1)),
                                                std::as_bytes(std::span(text))};
  for (const auto& tensor : tensors) parts.push_back(std::as_bytes(std::span(tensor.values)));
  return write_whole_file(path, parts, "safetensors");
}

} // namespace shoal::learn
