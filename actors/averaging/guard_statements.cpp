#include "actors/averaging/guard_statements.hpp"

#include "actors/trust/evidence.hpp"
#include "actors/trust/identity.hpp"

#include <string_view>

namespace shoal::actors {

namespace {

void add_id(hasher& to, const id128& x) {
  to.add(x.high).add(x.low);
}

void add_all(hasher& to, std::span<const id128> all) {
  to.add(static_cast<std::uint64_t>(all.size()));
  for (const auto& each : all) add_id(to, each);
}

id128 hash_of_list(std::string_view kind, std::span<const id128> all) {
  auto out = statement(kind);
  add_all(out, all);
  return id128::from(out.finish());
}

} // namespace

id128 hash_of_chunk(const payload& wire, bool falsified) {
  hasher out;
  const bool has_bytes = !wire.is_size_only();
  out.add(has_bytes).add(static_cast<std::uint64_t>(wire.size()));
  if (has_bytes)
    out.add(wire.bytes());
  else
    out.add(falsified);
  return id128::from(out.finish());
}

id128 hash_of_chunks(std::span<const id128> chunks) {
  return hash_of_list("shoal.chunks", chunks);
}

id128 content_of(const round_commitment& what) {
  auto out = statement("shoal.commitment");
  add_id(out, what.group);
  out.add(what.member);
  add_all(out, what.parts);
  out.add(static_cast<std::uint64_t>(what.blocks.size()));
  for (const auto& block : what.blocks) out.add(block.first).add(block.count);
  add_id(out, what.secret);
  return id128::from(out.finish());
}

digest commitment_statement(const round_commitment& what) {
  return statement_about(statement_kind::commitment, what.group, content_of(what));
}

id128 hash_of_commitments(std::span<const std::optional<id128>> contents) {
  auto out = statement("shoal.commitments");
  for (const auto& each : contents) {
    out.add(each.has_value());
    if (each) add_id(out, *each);
  }
  return id128::from(out.finish());
}

id128 content_of(const part_checks& what) {
  auto out = statement("shoal.checks");
  out.add(what.member);
  for (const auto* list : {&what.products, &what.norms}) {
    out.add(static_cast<std::uint64_t>(list->size()));
    for (const auto bits : *list) out.add(bits);
  }
  return id128::from(out.finish());
}

id128 checks_subject(const group_id& group, const id128& random) {
  auto out = statement("shoal.checks.subject");
  add_id(out, group);
  add_id(out, random);
  return id128::from(out.finish());
}

digest checks_statement(const part_checks& what) {
  return statement_about(statement_kind::checks, checks_subject(what.group, what.random),
                         content_of(what));
}

id128 root_of_part(std::span<const id128> chunks) {
  return hash_of_list("shoal.part", chunks);
}

id128 part_subject(const group_id& group, std::uint32_t part) {
  auto out = statement("shoal.part.subject");
  add_id(out, group);
  out.add(part);
  return id128::from(out.finish());
}

digest part_statement(const part_sealed& what) {
  return statement_about(statement_kind::part, part_subject(what.group, what.part), what.root);
}

digest accusation_statement(const accusation& what) {
  auto out = statement("shoal.accusation");
  add_id(out, what.group);
  out.add(what.member).add(what.accused).add(what.kind).add(what.part);
  return out.finish();
}

} // namespace shoal::actors
