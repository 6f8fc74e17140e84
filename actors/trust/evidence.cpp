#include "actors/trust/evidence.hpp"

#include "actors/observe.hpp"
#include "actors/trust/identity.hpp"
#include "kernels/base/text_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace shoal::actors {

digest statement_about(statement_kind kind, const id128& subject, const id128& content) {
  auto out = statement("about");
  out.add(statement_kind_names[static_cast<std::size_t>(kind)]);
  for (const auto& each : {subject, content}) out.add(each.high).add(each.low);
  return out.finish();
}

bool holds(const evidence& what, const signature_check& is_signed_by) {
  if (what.kind >= statement_kind_names.size() || what.first == what.second) return false;
  const auto kind = static_cast<statement_kind>(what.kind);
  return is_signed_by(what.culprit, statement_about(kind, what.subject, what.first),
                      what.first_by) &&
         is_signed_by(what.culprit, statement_about(kind, what.subject, what.second),
                      what.second_by);
}

std::string_view meaning(const evidence& what) {
  switch (static_cast<statement_kind>(what.kind)) {
  case statement_kind::vote:
    return what.first.is_zero() || what.second.is_zero() ? "a vote in a round that it declined"
                                                         : "two votes in one round";
  case statement_kind::group:
    return "two groups in one attempt to lead";
  case statement_kind::part:
    return "two results for one part of a round";
  case statement_kind::commitment:
    return "two commitments in one round";
  case statement_kind::checks:
    return "two lists of checks in one round";
  }
  return "unknown";
}

std::string to_line(const evidence& what) {
  return fmt::format("{} {} {} {} {} {} {}", statement_kind_names[what.kind], hex_of(what.culprit),
                     hex_of(what.subject), hex_of(what.first), hex_of(what.second),
                     hex_of(what.first_by), hex_of(what.second_by));
}

result<evidence> evidence_from_line(std::string_view line) {
  const auto words = split(line, ' ');
  evidence out;
  bool good = words.size() == 7;
  if (good) {
    good = false;
    for (std::size_t i = 0; i < statement_kind_names.size(); ++i)
      if (words[0] == statement_kind_names[i]) {
        out.kind = static_cast<std::uint8_t>(i);
        good = true;
      }
  }
  if (!good || !read_hex(words[1], out.culprit) || !read_hex(words[2], out.subject) ||
      !read_hex(words[3], out.first) || !read_hex(words[4], out.second) ||
      !read_hex(words[5], out.first_by) || !read_hex(words[6], out.second_by))
    return failure{"not a line of evidence: expected a kind and six numbers in hexadecimal digits"};
  return out;
}

std::string member_banned::logged_fields() const {
  return fmt::format(R"("member":"{}","why":"{}")", member.hex(), why);
}

} // namespace shoal::actors
