#include "actors/trust/proof.hpp"

#include "actors/trust/identity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace shoal::actors {

namespace {

/// Reads the lines that begin with a word of one kind of proof.
struct kind_of_line {
  bool (*begins_with)(std::string_view word);
  result<proof> (*read)(std::string_view line);
};

bool is_statement_kind(std::string_view word) {
  return std::find(statement_kind_names.begin(), statement_kind_names.end(), word) !=
         statement_kind_names.end();
}

result<proof> read_evidence(std::string_view line) {
  auto out = evidence_from_line(line);
  if (!out) return failure{out.error()};
  return proof{*std::move(out)};
}

bool is_verdict(std::string_view word) {
  return word == "verdict";
}

result<proof> read_verdict(std::string_view line) {
  auto out = verdict_from_line(line);
  if (!out) return failure{out.error()};
  return proof{*std::move(out)};
}

constexpr std::string_view swarm_word = " swarm ", no_swarm = "simulation";

constexpr std::array kinds_of_lines{kind_of_line{is_statement_kind, read_evidence},
                                    kind_of_line{is_verdict, read_verdict}};

} // namespace

const key256& culprit_of(const proof& what) {
  return std::visit([](const auto& x) -> const key256& { return x.culprit; }, what);
}

bool holds(const proof& what, const signature_check& is_signed_by) {
  return std::visit([&](const auto& x) { return holds(x, is_signed_by); }, what);
}

std::string meaning_of(const proof& what) {
  return std::visit([](const auto& x) { return std::string(meaning(x)); }, what);
}

std::vector<std::string> said(const evidence& what) {
  const auto sentence = [&](const id128& content) {
    switch (static_cast<statement_kind>(what.kind)) {
    case statement_kind::vote:
      return content.is_zero()
                 ? fmt::format("it declines the result of round {}", what.subject.hex())
                 : fmt::format("the result of round {} is {}", what.subject.hex(), content.hex());
    case statement_kind::group:
      return fmt::format("attempt {} to lead has the group {}", what.subject.hex(), content.hex());
    case statement_kind::part:
      return fmt::format("part {} has the values {}", what.subject.hex(), content.hex());
    case statement_kind::commitment:
      return fmt::format("its commitment in round {} is {}", what.subject.hex(), content.hex());
    case statement_kind::checks:
      return fmt::format("its checks {} are {}", what.subject.hex(), content.hex());
    }
    return std::string("unknown");
  };
  return {sentence(what.first), sentence(what.second)};
}

std::vector<std::string> statements_in(const proof& what) {
  return std::visit([](const auto& x) { return said(x); }, what);
}

std::string to_line(const proof& what) {
  return std::visit([](const auto& x) { return to_line(x); }, what);
}

std::string to_line(const proof_in_swarm& what) {
  return fmt::format("{}{}{}", to_line(what.what), swarm_word,
                     what.swarm.empty() ? no_swarm : std::string_view(what.swarm));
}

result<proof> proof_from_line(std::string_view line) {
  const auto word = line.substr(0, line.find(' '));
  for (const auto& kind : kinds_of_lines)
    if (kind.begins_with(word)) return kind.read(line);
  return failure{fmt::format("a proof begins with its kind, one of verdict, {}",
                             fmt::join(statement_kind_names, ", "))};
}

result<proof_in_swarm> proof_in_swarm_from(std::string_view line) {
  const auto at = line.find(swarm_word);
  if (at == std::string_view::npos) return failure{"a line of a proof is 'PROOF swarm HASH'"};
  auto what = proof_from_line(line.substr(0, at));
  if (!what) return failure{what.error()};
  const auto swarm = line.substr(at + swarm_word.size());
  if (swarm == no_swarm) return proof_in_swarm{*std::move(what), {}};
  if (swarm.size() != 64 || swarm.find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return failure{"the word after 'swarm' is no hash of 64 hexadecimal digits"};
  return proof_in_swarm{*std::move(what), std::string(swarm)};
}

bool holds(const proof_in_swarm& what) {
  return !what.swarm.empty() && holds(what.what, signed_in_swarm(what.swarm));
}

digest in_swarm(std::string_view swarm, const digest& statement) {
  return hasher{}.add(std::string_view{"shoal.in_swarm"}).add(statement).add(swarm).finish();
}

signature_check signed_in_swarm(std::string swarm) {
  return [swarm = std::move(swarm)](const key256& key, const digest& text, const signature& by) {
    return is_signed_by(key, in_swarm(swarm, text), by);
  };
}

std::string proof_taken::logged_fields() const {
  return fmt::format(R"("member":"{}","name":"{}","proof":"{}")", member.hex(), name,
                     to_line(what));
}

} // namespace shoal::actors
