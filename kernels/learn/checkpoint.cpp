#include "kernels/learn/checkpoint.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/digest.hpp"
#include "kernels/base/json_text.hpp"
#include "kernels/base/whole_number.hpp"
#include "kernels/learn/formats/json_words.hpp"
#include "kernels/learn/formats/whole_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

namespace shoal::learn {

static_assert(std::endian::native == std::endian::little, "checkpoints hold the machine's floats");

namespace {

using nlohmann::json;

constexpr std::string_view magic = "SHOALCKP";
constexpr std::uint32_t format_version = 2;
constexpr std::size_t preamble = 16; // magic, version, header size
constexpr std::size_t alignment = 64;
constexpr std::array<const char*, 4> sections{"header", "parameters", "optimizer state",
                                              "whole file"};
constexpr std::size_t trailer = sections.size() * sizeof(digest::bytes);

constexpr int deepest_description = 16; // objects in objects, which are written by recursion

std::size_t aligned(std::size_t size) {
  return (size + alignment - 1) / alignment * alignment;
}

json to_json(const checkpoint& c) {
  const auto& o = c.optimizer;
  json tensors = json::array();
  for (const auto& tensor : c.tensors)
    tensors.push_back({{"name", tensor.name}, {"shape", tensor.shape}});
  json model = nullptr;
  if (!c.model.empty()) model = try_json<json>(c.model);
  SHOAL_CHECK(c.model.empty() || model.is_object(), "a model's description is a JSON object");
  return {{"workload", c.workload},
          {"tensors", tensors},
          {"model", model},
          {"optimizer",
           {{"kind", to_string(o.kind)},
            {"learning_rate", o.learning_rate},
            {"momentum", o.momentum},
            {"beta1", o.beta1},
            {"beta2", o.beta2},
            {"epsilon", o.epsilon},
            {"weight_decay", o.weight_decay},
            {"debias", o.debias},
            {"weight_norm_clamp", o.weight_norm_clamp},
            {"trust_ratio_max", o.trust_ratio_max},
            {"adapt_undecayed", o.adapt_undecayed},
            {"clip_norm", o.clip_norm},
            {"warmup_steps", o.warmup_steps},
            {"decay_steps", o.decay_steps},
            {"final_rate_fraction", o.final_rate_fraction}}},
          {"epoch", c.epoch},
          {"step", c.step},
          {"samples", c.samples},
          {"data_from", c.data_from},
          {"state_id", c.state_id},
          {"notes", c.notes},
          {"parameters", c.parameters.size()},
          {"optimizer_state", c.optimizer_state.size() / sizeof(float)}};
}

/// Bytes of a complete state, with which training can go on.
std::size_t whole_state(const kernels::optimizer_config& optimizer, std::size_t parameters,
                        std::uint64_t q) {
  return state_bytes(optimizer, parameters) + q * sizeof(float);
}

/// Whether a tensor of this shape has at most `most` values.
bool fits(const std::vector<std::int64_t>& shape, std::uint64_t most) {
  std::uint64_t values = 1;
  bool none = false;
  for (const auto extent : shape) {
    if (extent < 0) return false;
    none = none || extent == 0;
    if (extent > 0 && values > most / static_cast<std::uint64_t>(extent)) return false;
    values *= extent > 0 ? static_cast<std::uint64_t>(extent) : 1;
  }
  return none || values <= most;
}

template <class T>
void get_whole(const json& from, T& into) {
  into = whole_number<T>(from);
}

/// Whether no value lies in more than `levels` objects and arrays.
bool at_most_deep(const json& value, int levels) {
  if (!value.is_structured()) return true;
  return levels > 0 && std::all_of(value.begin(), value.end(), [&](const json& inner) {
           return at_most_deep(inner, levels - 1);
         });
}

/// `most`: the number of parameters in the file. Throws json::exception if a key is missing or of
/// another type.
result<checkpoint> from_json(const json& header, std::uint64_t most) {
  checkpoint c;
  header.at("workload").get_to(c.workload);
  std::size_t offset = 0;
  for (const auto& tensor : header.at("tensors")) {
    kernels::tensor_slot slot;
    tensor.at("name").get_to(slot.name);
    for (const auto& extent : tensor.at("shape").get_ref<const json::array_t&>())
      slot.shape.push_back(whole_number<std::int64_t>(extent));
    // A sum of sizes that do not fit would wrap around to a size that does.
    if (!fits(slot.shape, most - offset))
      return failure{"makes no sense: its tensor '" + slot.name +
                     "' has a shape that no tensor in this file can have"};
    slot.offset = offset;
    offset += slot.size();
    c.tensors.push_back(std::move(slot));
  }
  if (const auto model = header.find("model"); model != header.end() && !model->is_null()) {
    if (!model->is_object() || !at_most_deep(*model, deepest_description))
      return failure{"makes no sense: the description of its model is no JSON object, or one of "
                     "too many levels"};
    c.model = model->dump();
  }
  const auto& o = header.at("optimizer");
  const auto kind = kernels::parse_optimizer_kind(o.at("kind").get<std::string>());
  if (!kind) return failure{"has an optimizer that this program does not know: " + kind.error()};
  c.optimizer.kind = *kind;
  o.at("learning_rate").get_to(c.optimizer.learning_rate);
  o.at("momentum").get_to(c.optimizer.momentum);
  o.at("beta1").get_to(c.optimizer.beta1);
  o.at("beta2").get_to(c.optimizer.beta2);
  o.at("epsilon").get_to(c.optimizer.epsilon);
  o.at("weight_decay").get_to(c.optimizer.weight_decay);
  o.at("debias").get_to(c.optimizer.debias);
  o.at("weight_norm_clamp").get_to(c.optimizer.weight_norm_clamp);
  o.at("trust_ratio_max").get_to(c.optimizer.trust_ratio_max);
  c.optimizer.adapt_undecayed = o.value("adapt_undecayed", true); // older files lack the entry
  o.at("clip_norm").get_to(c.optimizer.clip_norm);
  get_whole(o.at("warmup_steps"), c.optimizer.warmup_steps);
  get_whole(o.at("decay_steps"), c.optimizer.decay_steps);
  o.at("final_rate_fraction").get_to(c.optimizer.final_rate_fraction);
  get_whole(header.at("epoch"), c.epoch);
  get_whole(header.at("step"), c.step);
  get_whole(header.at("samples"), c.samples);
  get_whole(header.at("data_from"), c.data_from);
  header.at("state_id").get_to(c.state_id);
  header.at("notes").get_to(c.notes);
  return c;
}

std::size_t size_of(const std::vector<kernels::tensor_slot>& tensors) {
  std::size_t out = 0;
  for (const auto& tensor : tensors) out += tensor.size();
  return out;
}

/// The digests of the file's parts, in the order of `sections`.
std::array<digest, 4> digests_of(std::string_view head, std::span<const float> parameters,
                                 std::span<const std::byte> optimizer_state) {
  std::array<digest, 4> out;
  out[0] = hash_of(std::as_bytes(std::span(head)));
  out[1] = hash_of(std::as_bytes(parameters));
  out[2] = hash_of(optimizer_state);
  hasher all;
  all.add(std::as_bytes(std::span(head)));
  all.add(std::as_bytes(parameters));
  all.add(optimizer_state);
  for (std::size_t i = 0; i < 3; ++i) all.add(out[i]);
  out[3] = all.finish();
  return out;
}

} // namespace

std::vector<kernels::tensor_slot> one_tensor(std::string name, std::size_t n) {
  return {{std::move(name), 0, {static_cast<std::int64_t>(n)}}};
}

bool same_tensors(const std::vector<kernels::tensor_slot>& a,
                  const std::vector<kernels::tensor_slot>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.name == y.name && x.shape == y.shape;
  });
}

std::string shape_text(const checkpoint& of) {
  std::string out = of.workload + ": ";
  if (const auto model = try_json<json>(of.model); model.is_object()) {
    bool first = true;
    for (const auto& [key, value] : model.items()) {
      out += (first ? "" : ", ") + key + " " +
             (value.is_string() ? value.get<std::string>() : json_text(value));
      first = false;
    }
    return out;
  }
  for (std::size_t i = 0; i < of.tensors.size(); ++i) {
    out += (i == 0 ? "" : ", ") + of.tensors[i].name + " [";
    const auto& shape = of.tensors[i].shape;
    for (std::size_t k = 0; k < shape.size(); ++k)
      out += (k == 0 ? "" : ", ") + std::to_string(shape[k]);
    out += "]";
  }
  return out;
}

result<void> continues(const checkpoint& saved, const checkpoint& wanted) {
  if (saved.workload != wanted.workload || saved.model != wanted.model ||
      !same_tensors(saved.tensors, wanted.tensors))
    return failure{"is of another model: it has " + shape_text(saved) + "; the scenario has " +
                   shape_text(wanted)};
  const auto kind = [](const checkpoint& of) {
    return std::string(to_string(of.optimizer.kind)) +
           (of.optimizer.kind == kernels::optimizer_kind::sgd && of.optimizer.momentum > 0
                ? " with momentum"
                : "");
  };
  if (kind(saved) != kind(wanted))
    return failure{"is of another optimizer: it has " + kind(saved) + "; the scenario has " +
                   kind(wanted)};
  if (saved.optimizer_state.size() !=
      whole_state(wanted.optimizer, size_of(wanted.tensors), saved.power_sgd_values))
    return failure{"has no optimizer state: it is a model to use, not to go on training"};
  return {};
}

result<void> save(const checkpoint& state, const std::filesystem::path& path) {
  SHOAL_CHECK(state.parameters.size() == size_of(state.tensors),
              "the parameters have the tensors' size");
  SHOAL_CHECK(state.optimizer_state.empty() ||
                  state.optimizer_state.size() ==
                      whole_state(state.optimizer, state.parameters.size(), state.power_sgd_values),
              "the state is that of the optimizer");
  SHOAL_CHECK(state.method_state.size() % sizeof(float) == 0, "the method's state is whole floats");
  // Invalid UTF-8 in a note is replaced and throws nothing.
  auto described = to_json(state);
  if (state.power_sgd_rank > 0)
    described["power_sgd"] = {{"rank", state.power_sgd_rank}, {"values", state.power_sgd_values}};
  std::span<const std::byte> tail = state.optimizer_state;
  std::vector<std::byte> with_method;
  if (!state.method_state.empty()) {
    with_method = state.optimizer_state;
    with_method.insert(with_method.end(), state.method_state.begin(), state.method_state.end());
    tail = with_method;
    described["optimizer_state"] = tail.size() / sizeof(float);
    described["method_state"] = state.method_state.size() / sizeof(float);
  }
  const auto header = clean_json_text(described, 1);
  std::string head(aligned(preamble + header.size()), '\0');
  const auto header_size = static_cast<std::uint32_t>(header.size());
  std::memcpy(head.data(), magic.data(), magic.size());
  std::memcpy(head.data() + 8, &format_version, 4);
  std::memcpy(head.data() + 12, &header_size, 4);
  std::memcpy(head.data() + preamble, header.data(), header.size());
  const auto checks = digests_of(head, state.parameters, tail);

  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(head)),
                                              std::as_bytes(std::span(state.parameters)), tail,
                                              std::as_bytes(std::span(checks))};
  static_assert(sizeof(checks) == trailer);
  return write_whole_file(path, parts, "checkpoint");
}

result<checkpoint> load_checkpoint(const std::filesystem::path& path) {
  auto refuse = [&](const std::string& why) -> result<checkpoint> {
    return failure{"checkpoint: '" + path.string() + "' " + why};
  };
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return refuse("does not exist");
  if (!std::filesystem::is_regular_file(path, error)) return refuse("is not a file");
  const auto size = std::filesystem::file_size(path, error);
  if (error) return refuse("cannot be read: " + error.message());
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return refuse(std::string("cannot be opened: ") + std::strerror(errno));
  return read_checkpoint(in, size, path.string());
}

result<checkpoint> read_checkpoint(std::istream& in, std::uint64_t size, const std::string& name) {
  auto refuse = [&](const std::string& why) -> result<checkpoint> {
    return failure{"checkpoint: '" + name + "' " + why};
  };
  char front[preamble] = {};
  in.read(front, preamble);
  if (!in || std::string_view(front, magic.size()) != magic)
    return refuse("is not a Shoal checkpoint (it does not begin with " + std::string(magic) + ")");
  std::uint32_t version = 0, header_size = 0;
  std::memcpy(&version, front + 8, 4);
  std::memcpy(&header_size, front + 12, 4);
  if (version != format_version)
    return refuse("has checkpoint format " + std::to_string(version) +
                  "; this program reads format " + std::to_string(format_version));
  const auto head_size = aligned(preamble + std::size_t{header_size});
  if (head_size + trailer > size) return refuse("is truncated in its header");

  std::string head(head_size, '\0');
  std::memcpy(head.data(), front, preamble);
  in.read(head.data() + preamble, static_cast<std::streamsize>(head_size - preamble));
  if (!in) return refuse("ended while it was read");
  const std::uint64_t floats = (size - head_size - trailer) / sizeof(float);
  checkpoint c;
  std::uint64_t n = 0, m = 0, of_method = 0;
  std::string nonsense; // reported only after the hashes show that the file is undamaged
  try {
    const auto header = parse_json<json>(std::string_view(head).substr(preamble, header_size));
    get_whole(header.at("parameters"), n);
    get_whole(header.at("optimizer_state"), m);
    if (n > floats || m > floats || size != head_size + (n + m) * sizeof(float) + trailer)
      return refuse("is truncated or has bytes too many (" + std::to_string(size) +
                    "): its header speaks of " + std::to_string(n) + " parameters and " +
                    std::to_string(m) +
                    " times 4 bytes of optimizer state; copy it again, or take another one");
    if (auto described = from_json(header, n))
      c = *std::move(described);
    else
      nonsense = described.error();
    if (const auto low_rank = header.find("power_sgd"); low_rank != header.end()) {
      get_whole(low_rank->at("rank"), c.power_sgd_rank);
      get_whole(low_rank->at("values"), c.power_sgd_values);
    }
    if (header.contains("method_state")) get_whole(header.at("method_state"), of_method);
  } catch (const json::exception& e) {
    return refuse("is damaged: it has a header that cannot be understood (" +
                  std::string(json_words(e.what())) + "); take another one");
  }
  c.parameters.resize(n);
  c.optimizer_state.resize(m * sizeof(float));
  std::array<digest, 4> stored;
  in.read(reinterpret_cast<char*>(c.parameters.data()),
          static_cast<std::streamsize>(n * sizeof(float)));
  in.read(reinterpret_cast<char*>(c.optimizer_state.data()),
          static_cast<std::streamsize>(c.optimizer_state.size()));
  in.read(reinterpret_cast<char*>(stored.data()), trailer);
  if (!in) return refuse("ended while it was read");
  const auto found = digests_of(head, c.parameters, c.optimizer_state);
  for (std::size_t i = 0; i < sections.size(); ++i)
    if (found[i] != stored[i])
      return refuse(std::string("is damaged: the hash of its ") + sections[i] + " should be " +
                    stored[i].hex() + " and is " + found[i].hex() +
                    "; copy it again, or take another one");

  // The hashes are right, so the file was written this way.
  if (!nonsense.empty()) return refuse(nonsense);
  if (auto fine = validate(c.optimizer); !fine) return refuse("makes no sense: " + fine.error());
  if (n != size_of(c.tensors))
    return refuse("makes no sense: its parameters do not fit its tensors");
  if (of_method > m)
    return refuse(
        "makes no sense: the state of its training method is larger than all that it remembers");
  m -= of_method;
  const auto moments = c.optimizer_state.begin() + static_cast<std::ptrdiff_t>(m * sizeof(float));
  c.method_state.assign(moments, c.optimizer_state.end());
  c.optimizer_state.erase(moments, c.optimizer_state.end());
  // Every matrix has at least as many values as its Q.
  if (c.power_sgd_values > n)
    return refuse("makes no sense: its Q of PowerSGD is larger than the model");
  if (m != 0 && (c.power_sgd_values > m ||
                 m * sizeof(float) != whole_state(c.optimizer, n, c.power_sgd_values)))
    return refuse("makes no sense: its state does not fit its optimizer");
  return c;
}

} // namespace shoal::learn
