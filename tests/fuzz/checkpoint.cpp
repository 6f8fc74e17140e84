// Checkpoints: as they are, and (so that not only the hashes are looked at) with any header at all
// under hashes that are right.
#include "kernels/learn/checkpoint.hpp"

#include "kernels/base/digest.hpp"
#include "kernels/learn/transformer_description.hpp"
#include "tests/fuzz/targets.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <sstream>

namespace shoal::fuzz {

namespace {

/// A file with this header, values that are as many as it says (if that is not too many), and the
/// hashes of all that.
std::string sealed(std::string_view header, std::size_t filling) {
  std::string head("SHOALCKP");
  const std::uint32_t version = 2, size = static_cast<std::uint32_t>(header.size());
  head.append(reinterpret_cast<const char*>(&version), 4)
      .append(reinterpret_cast<const char*>(&size), 4)
      .append(header);
  head.resize((head.size() + 63) / 64 * 64);
  // As it is written; to read all of it here, too, is as much work as what is looked at.
  const auto count = [&](std::string_view key) {
    std::size_t out = 0;
    const auto at = header.find(key);
    if (at == std::string_view::npos) return out;
    const auto digits = std::min(header.find_first_not_of(' ', at + key.size()), header.size());
    std::from_chars(header.data() + digits, header.data() + header.size(), out);
    return out <= 4096 ? out : 0;
  };
  const auto n = count("\"parameters\":"), m = count("\"optimizer_state\":");
  const std::string parameters(4 * n, static_cast<char>(filling)),
      state(4 * m, static_cast<char>(filling));
  std::array<digest, 4> checks;
  const auto bytes_of = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  checks[0] = hash_of(bytes_of(head));
  checks[1] = hash_of(bytes_of(parameters));
  checks[2] = hash_of(bytes_of(state));
  hasher all;
  all.add(bytes_of(head)).add(bytes_of(parameters)).add(bytes_of(state));
  for (std::size_t i = 0; i < 3; ++i) all.add(checks[i]);
  checks[3] = all.finish();
  return head + parameters + state +
         std::string(reinterpret_cast<const char*>(checks.data()), sizeof(checks));
}

} // namespace

void checkpoint(bytes input) {
  front from(input);
  const auto how = from.byte();
  const auto rest = text_of(from.rest());
  const auto file = how < 128 ? sealed(rest, how) : std::string(rest);
  std::istringstream in(file);
  const auto read = learn::read_checkpoint(in, file.size(), "any");
  if (!read)
    return must(read.error().starts_with("checkpoint: 'any' "), "an error says which file");
  must(read->parameters.size() * sizeof(float) + read->optimizer_state.size() <= file.size(),
       "nothing is there that was not in the file");
  std::size_t end = 0;
  for (const auto& tensor : read->tensors) {
    must(tensor.offset == end, "tensors lie one behind the other");
    for (const auto extent : tensor.shape) must(extent >= 0, "a tensor's sides are not negative");
    must(tensor.size() <= read->parameters.size() - end, "and within the parameters");
    end += tensor.size();
  }
  must(end == read->parameters.size(), "they are all of them");
  must(read->model.empty() || (read->model.front() == '{' && read->model.back() == '}'),
       "a model's description is an object");
  if (const auto model = learn::transformer_of(*read))
    must(parameter_count(*model) == end && learn::shape_text(*read).starts_with("transformer: "),
         "a transformer has the tensors of its sizes");
  must(validate(read->optimizer).ok(), "its optimizer makes sense");
  const auto q = read->power_sgd_values * sizeof(float);
  must(read->power_sgd_values <= end, "its Q is no larger than the model");
  must(learn::continues(*read, *read).ok() ==
           (read->optimizer_state.size() == state_bytes(read->optimizer, end) + q),
       "who has all of a state goes on from it");
}

} // namespace shoal::fuzz
