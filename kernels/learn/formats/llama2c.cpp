#include "kernels/learn/formats/llama2c.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <istream>
#include <span>

namespace shoal::learn {

namespace {

static_assert(std::endian::native == std::endian::little, "the file is little-endian");

constexpr std::uint32_t later_magic = 0x616b3432; // "ak42"
constexpr std::size_t front_bytes = 28;
constexpr std::int64_t largest_size = 1 << 24; // No product of three such sizes overflows.

/// One kind of tensor: as many as layers, or one.
struct kind {
  const char* name; // without 'model.layers.{i}.' and '.weight'
  std::vector<std::int64_t> shape;
  std::int64_t rotated_heads = 0; // The file rotates neighbouring rows of these.
};

std::string in_layer(std::int64_t layer, const char* name) {
  return "model.layers." + std::to_string(layer) + "." + name + ".weight";
}

std::vector<kind> kinds_of_layer(const llama_shape& s) {
  const auto kv = s.dim / s.heads * s.kv_heads;
  return {{"input_layernorm", {s.dim}},
          {"self_attn.q_proj", {s.dim, s.dim}, s.heads},
          {"self_attn.k_proj", {kv, s.dim}, s.kv_heads},
          {"self_attn.v_proj", {kv, s.dim}},
          {"self_attn.o_proj", {s.dim, s.dim}},
          {"post_attention_layernorm", {s.dim}},
          {"mlp.gate_proj", {s.hidden_dim, s.dim}},
          {"mlp.down_proj", {s.dim, s.hidden_dim}},
          {"mlp.up_proj", {s.hidden_dim, s.dim}}};
}

std::uint64_t elements(const std::vector<std::int64_t>& shape) {
  std::uint64_t out = 1;
  for (const auto extent : shape) out *= static_cast<std::uint64_t>(extent);
  return out;
}

/// Row 2 j + h of each head becomes row h d / 2 + j.
std::vector<float> halves(const std::vector<float>& rows, std::int64_t heads, std::int64_t width) {
  std::vector<float> out(rows.size());
  const auto w = static_cast<std::size_t>(width), n = static_cast<std::size_t>(heads);
  const auto d = rows.size() / w / n;
  for (std::size_t head = 0; head < n; ++head)
    for (std::size_t row = 0; row < d; ++row) {
      const auto to = row % 2 * (d / 2) + row / 2;
      std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>((head * d + row) * w), w,
                  out.begin() + static_cast<std::ptrdiff_t>((head * d + to) * w));
    }
  return out;
}

/// The reason for which no model can have these sizes; empty if there is none.
std::string wrong_in(const llama_shape& s) {
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"dim", s.dim},        {"hidden_dim", s.hidden_dim}, {"layers", s.layers},
      {"heads", s.heads},    {"kv_heads", s.kv_heads},     {"vocabulary", s.vocabulary},
      {"context", s.context}};
  for (const auto& [name, value] : sizes)
    if (value <= 0 || value > largest_size)
      return std::string("its ") + name + " is " + std::to_string(value);
  if (s.dim % (2 * s.heads) != 0)
    return "its dim " + std::to_string(s.dim) + " is no multiple of twice its " +
           std::to_string(s.heads) + " heads";
  if (s.heads % s.kv_heads != 0)
    return "its " + std::to_string(s.heads) + " heads are no multiple of its " +
           std::to_string(s.kv_heads) + " kv_heads";
  return {};
}

} // namespace

std::uint64_t parameter_count(const llama_shape& shape) {
  std::uint64_t layer = 0;
  for (const auto& each : kinds_of_layer(shape)) layer += elements(each.shape);
  const auto embedding = elements({shape.vocabulary, shape.dim});
  return embedding * (shape.tied ? 1 : 2) + static_cast<std::uint64_t>(shape.layers) * layer +
         static_cast<std::uint64_t>(shape.dim);
}

result<llama2c_model> load_llama2c(const std::filesystem::path& path) {
  auto refuse = [&](const std::string& why) -> result<llama2c_model> {
    return failure{"llama2.c model: '" + path.string() + "' " + why};
  };
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return refuse("does not exist");
  if (!std::filesystem::is_regular_file(path, error)) return refuse("is not a file");
  const auto size = std::filesystem::file_size(path, error);
  if (error) return refuse("cannot be read: " + error.message());
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return refuse(std::string("cannot be opened: ") + std::strerror(errno));
  return read_llama2c(in, size, path.string());
}

result<llama2c_model> read_llama2c(std::istream& in, std::uint64_t size, const std::string& name) {
  auto refuse = [&](const std::string& why) -> result<llama2c_model> {
    return failure{"llama2.c model: '" + name + "' " + why};
  };
  std::array<std::int32_t, 7> front{};
  in.read(reinterpret_cast<char*>(front.data()), front_bytes);
  if (!in) return refuse("is truncated in its header of 28 bytes");
  if (static_cast<std::uint32_t>(front[0]) == later_magic)
    return refuse("has format version " + std::to_string(front[1]) +
                  " of llama2.c; export it with --version 0");
  llama2c_model out;
  auto& s = out.shape;
  s = {front[0], front[1], front[2], front[3], front[4], front[5], front[6], front[5] > 0};
  s.vocabulary = s.tied ? s.vocabulary : -s.vocabulary;
  if (const auto why = wrong_in(s); !why.empty()) return refuse("is no model of llama2.c: " + why);

  const auto kinds = kinds_of_layer(s);
  const auto table = elements({s.context, s.dim / s.heads / 2});
  // Wider than 64 bits: a foreign file may ask for any number of layers.
  __extension__ using wide = unsigned __int128;
  wide layer = 0;
  for (const auto& each : kinds) layer += elements(each.shape);
  const wide needed = (wide{elements({s.vocabulary, s.dim})} * (s.tied ? 1 : 2) +
                       layer * static_cast<std::uint64_t>(s.layers) +
                       static_cast<std::uint64_t>(s.dim) + 2 * wide{table}) *
                          sizeof(float) +
                      front_bytes;
  if (needed != size)
    return refuse("has " + std::to_string(size) + " bytes; a model of dim " +
                  std::to_string(s.dim) + ", " + std::to_string(s.layers) +
                  " layers and a vocabulary of " + std::to_string(s.vocabulary) +
                  (needed > wide{~std::uint64_t{0}}
                       ? std::string(" needs more than 2^64")
                       : " needs " + std::to_string(static_cast<std::uint64_t>(needed))) +
                  "; copy it again");

  const auto read = [&](std::uint64_t count) {
    std::vector<float> values(count);
    in.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(count * sizeof(float)));
    return values;
  };
  const auto add = [&](std::string tensor, std::vector<std::int64_t> shape) {
    auto values = read(elements(shape));
    out.tensors.push_back({std::move(tensor), std::move(shape), std::move(values)});
  };
  add("model.embed_tokens.weight", {s.vocabulary, s.dim});
  // The file has one kind after the other. Models list one layer after the other.
  out.tensors.resize(1 + kinds.size() * static_cast<std::size_t>(s.layers));
  for (std::size_t k = 0; k < kinds.size(); ++k)
    for (std::int64_t i = 0; i < s.layers; ++i) {
      auto values = read(elements(kinds[k].shape));
      if (kinds[k].rotated_heads > 0) values = halves(values, kinds[k].rotated_heads, s.dim);
      out.tensors[1 + static_cast<std::size_t>(i) * kinds.size() + k] = {
          in_layer(i, kinds[k].name), kinds[k].shape, std::move(values)};
    }
  add("model.norm.weight", {s.dim});
  in.seekg(static_cast<std::streamoff>(2 * table * sizeof(float)), std::ios::cur);
  if (!s.tied) add("lm_head.weight", {s.vocabulary, s.dim});
  if (!in) return refuse("ended while it was read");
  return out;
}

} // namespace shoal::learn
