#include "kernels/learn/pictures/picture_set.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/json_text.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/learn/formats/tokenizer_json.hpp"
#include "kernels/learn/formats/whole_file.hpp"

#include <brotli/decode.h>
#include <brotli/encode.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

namespace shoal::learn {

namespace {

using nlohmann::json;

constexpr std::string_view magic = "SHOALPIC";
constexpr std::uint32_t default_version = 1, version = 2;
constexpr std::size_t head_bytes = 20;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T take(std::string_view& from) {
  T out{};
  std::memcpy(&out, from.data(), sizeof out);
  from.remove_prefix(sizeof out);
  return out;
}

/// Files of the default kind do not name it.
bool names_kind(const picture_set& set) {
  return set.coder->kind() != picture_coders().all().front().name;
}

/// The header of a file, and what it says of the coder.
struct read_header {
  coder_grid grid;
  const picture_coder_kind* kind = &picture_coders().all().front();
  coder_sizes sizes;
};

/// Sets the captions and their tokenizer. Errors: the header's fault.
result<read_header> take_header(std::string_view& text, const std::string& name,
                                picture_set& into) {
  if (text.size() < 8) return failure{"it ends in its header"};
  const auto size = take<std::uint64_t>(text);
  if (size > text.size()) return failure{"it ends in its header"};
  read_header out;
  try {
    const auto header = parse_json<json>(text.substr(0, size));
    out.grid = {header.at("patch").get<std::size_t>(), header.at("side").get<std::size_t>(),
                header.at("codes").get<std::size_t>()};
    if (header.contains("codebook")) {
      const auto& codebook = header.at("codebook");
      const auto& kind = codebook.at("kind").get_ref<const std::string&>();
      out.kind = picture_coders().find(kind);
      if (out.kind == nullptr)
        return failure{"its codebook is of the kind '" + kind + "'; this program has " +
                       picture_coders().names()};
      out.sizes = codebook.at("sizes").get<coder_sizes>();
    }
    into.captions = header.at("captions").get<std::vector<std::string>>();
    into.held_out = header.at("held_out").get<std::vector<std::uint8_t>>();
    auto description =
        parse_tokenizer_json(header.at("tokenizer").get_ref<const std::string&>(), name);
    if (!description) return failure{description.error()};
    if (const auto words = into.use_words(std::move(*description)); !words)
      return failure{words.error()};
  } catch (const json::exception&) {
    return failure{"its header is no JSON of a set"};
  }
  text.remove_prefix(size);
  if (!out.grid.possible() || into.held_out.size() != into.captions.size())
    return failure{"its sizes make no sense"};
  return out;
}

/// Everything between the header and the codes. Errors: the values' fault.
made_coder take_coder(std::string_view& text, const read_header& header, std::size_t bytes) {
  std::vector<float> values(bytes / sizeof(float));
  for (auto& value : values) {
    value = take<float>(text);
    if (!std::isfinite(value)) return failure{"its codebook has a value that is not finite"};
  }
  return header.kind->read(header.grid, header.sizes, std::move(values));
}

} // namespace

result<void> picture_set::use_words(tokenizer_description description) {
  auto json = tokenizer_json(description); // a tokenizer keeps no description of its model
  auto made = tokenizer::make(std::move(description));
  if (!made) return failure{made.error()};
  words = std::make_shared<const tokenizer>(std::move(*made));
  words_json = std::move(json);
  return {};
}

std::vector<std::size_t> picture_set::places(bool of_held_out) const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < held_out.size(); ++i)
    if ((held_out[i] != 0) == of_held_out) out.push_back(i);
  return out;
}

std::vector<token_id> picture_set::tokens_of(std::string_view caption, std::size_t length) const {
  auto out = words->encode(caption);
  out.resize(length);
  return out;
}

std::vector<std::uint8_t> choose_held_out(std::span<const std::string> captions, double fraction,
                                          std::uint64_t seed) {
  std::vector<std::uint8_t> out(captions.size());
  std::vector<std::pair<std::string, std::string>> parts(captions.size());
  std::map<std::string, std::size_t> heads, tails; // captions that remain
  for (std::size_t i = 0; i < captions.size(); ++i) {
    const auto colon = captions[i].find(": ");
    if (colon == std::string::npos) continue;
    parts[i] = {captions[i].substr(0, colon), captions[i].substr(colon + 2)};
    ++heads[parts[i].first];
    ++tails[parts[i].second];
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < captions.size(); ++i)
    if (!parts[i].first.empty() && heads[parts[i].first] > 1 && tails[parts[i].second] > 1)
      order.push_back(i);
  const bool any = order.empty();
  if (any) {
    order.resize(captions.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
  }
  auto left = static_cast<std::size_t>(fraction * static_cast<double>(order.size()));
  auto random = stream(seed, "held_out_pictures");
  random.shuffle(std::span(order));
  for (const auto i : order) {
    if (left == 0) break;
    if (!any) {
      auto &head = heads[parts[i].first], &tail = tails[parts[i].second];
      if (head < 2 || tail < 2) continue;
      --head;
      --tail;
    }
    out[i] = 1;
    --left;
  }
  return out;
}

std::string text_of(const picture_set& set) {
  const auto& grid = set.coder->grid();
  json header{{"patch", grid.patch},      {"side", grid.side},
              {"codes", grid.codes},      {"captions", set.captions},
              {"held_out", set.held_out}, {"tokenizer", set.words_json}};
  if (names_kind(set))
    header["codebook"] = {{"kind", set.coder->kind()}, {"sizes", set.coder->sizes()}};
  const auto text = json_text(header);
  std::string out;
  put(out, static_cast<std::uint64_t>(text.size()));
  out += text;
  for (const float value : set.coder->values()) put(out, value);
  for (const auto& codes : set.codes)
    for (const auto code : codes) put(out, static_cast<std::uint16_t>(code));
  return out;
}

result<picture_set> parse_picture_set(std::string_view text, const std::string& name) {
  const auto damaged = [&](const std::string& what) {
    return failure{"pictures: '" + name + "' is damaged: " + what};
  };
  picture_set out;
  out.content = hash_of(std::as_bytes(std::span(text)));
  const auto header = take_header(text, name, out);
  if (!header) return damaged(header.error());
  const auto each = header->grid.places(), of_codes = 2 * out.captions.size() * each;
  if (text.size() < of_codes || (text.size() - of_codes) % sizeof(float) != 0)
    return damaged("its size does not agree with its header");
  auto coder = take_coder(text, *header, text.size() - of_codes);
  if (!coder) return damaged(coder.error());
  out.coder = std::move(*coder);
  for (std::size_t p = 0; p < out.captions.size(); ++p) {
    out.codes.emplace_back();
    for (std::size_t i = 0; i < each; ++i) {
      out.codes.back().push_back(take<std::uint16_t>(text));
      if (static_cast<std::size_t>(out.codes.back().back()) >= header->grid.codes)
        return damaged("picture " + std::to_string(p) + " has a code that the codebook lacks");
    }
  }
  return out;
}

result<void> save(const picture_set& set, const std::filesystem::path& path) {
  const auto text = text_of(set);
  std::string out(magic);
  put(out, names_kind(set) ? version : default_version);
  put(out, static_cast<std::uint64_t>(text.size()));
  std::size_t size = BrotliEncoderMaxCompressedSize(text.size());
  out.resize(head_bytes + size);
  SHOAL_CHECK(BrotliEncoderCompress(9, BROTLI_MAX_WINDOW_BITS, BROTLI_MODE_GENERIC, text.size(),
                                    reinterpret_cast<const std::uint8_t*>(text.data()), &size,
                                    reinterpret_cast<std::uint8_t*>(out.data()) + head_bytes),
              "the buffer has the size that Brotli asked for");
  out.resize(head_bytes + size);
  return write_whole_file(path, out, "pictures");
}

result<picture_set> load_picture_set(const std::filesystem::path& path) {
  const auto file = read_whole_file(path, most_bytes, "pictures");
  if (!file) return failure{file.error()};
  std::string_view text = *file;
  if (text.size() < head_bytes || !text.starts_with(magic))
    return failure{"pictures: '" + path.string() +
                   "' is no prepared set of pictures; make one with shoal images prepare"};
  text.remove_prefix(magic.size());
  if (const auto found = take<std::uint32_t>(text); found < default_version || found > version)
    return failure{"pictures: '" + path.string() + "' has version " + std::to_string(found) +
                   "; this program reads versions up to " + std::to_string(version)};
  const auto size = take<std::uint64_t>(text);
  if (size > most_bytes)
    return failure{"pictures: '" + path.string() + "' unpacks to more than 1 GiB"};
  std::string out(size, '\0');
  std::size_t got = size;
  if (BrotliDecoderDecompress(text.size(), reinterpret_cast<const std::uint8_t*>(text.data()), &got,
                              reinterpret_cast<std::uint8_t*>(out.data())) !=
          BROTLI_DECODER_RESULT_SUCCESS ||
      got != size)
    return failure{"pictures: '" + path.string() + "' is damaged: its Brotli data cannot be read"};
  return parse_picture_set(out, path.string());
}

} // namespace shoal::learn
