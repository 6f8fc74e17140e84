#include "actors/training/state_object.hpp"

#include "actors/averaging/certificate.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/digest.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace shoal::actors {

namespace {

using short_hash = std::array<std::uint64_t, 2>;
static_assert(sizeof(short_hash) == hash_bytes);

short_hash short_hash_of(std::span<const std::byte> bytes) {
  const auto id = id128::from(hash_of(bytes));
  return {id.high, id.low};
}

/// The optimizer's state, followed by the method's.
payload tail_of(const model_state& state) {
  if (state.method_state.empty()) return state.optimizer;
  const auto size = state.optimizer.size() + state.method_state.size();
  if (state.method_state.is_size_only()) return payload::size_only(size);
  std::vector<std::byte> out;
  out.reserve(size);
  for (const auto* part : {&state.optimizer, &state.method_state})
    out.insert(out.end(), part->bytes().begin(), part->bytes().end());
  return payload{std::move(out)};
}

} // namespace

id128 step_object(const state_id& before) {
  return id128::from(
      hasher{}.add(std::string_view{"step"}).add(before.high).add(before.low).finish());
}

std::vector<step_part> parts_of(const round_result& round) {
  std::vector<step_part> out;
  if (round.certificate && round.certificate->second) return out;
  for (const auto& part : round.parts)
    out.push_back({part.part, part.begin, part.end, part.senders});
  return out;
}

std::uint64_t samples_of(const std::vector<step_part>& parts,
                         const std::vector<member_info>& members) {
  std::uint64_t most = 0;
  for (const auto& part : parts) {
    std::uint64_t sum = 0;
    for (const auto sender : part.senders) sum += members[sender].weight;
    most = std::max(most, sum);
  }
  return most;
}

bool proves(const round_certificate& certificate, const taken_step& step,
            std::uint64_t samples_before) {
  if (certificate.second) return true;
  const auto& members = certificate.roster.members;
  const auto chunk_bytes = certificate.roster.chunk_bytes;
  if (chunk_bytes < 4 || chunk_bytes % 4 != 0) return false;
  const auto values = step.gradient.size() / 4;
  // The stretches cover the values, in order. They also say where each part begins.
  std::vector<std::uint64_t> boundaries;
  std::vector<part_outcome> parts;
  std::uint64_t end = 0;
  for (const auto& part : step.parts) {
    const bool goes_on = !parts.empty() && parts.back().part == part.part;
    if (part.begin != end || part.end <= part.begin || part.part >= members.size() ||
        (!parts.empty() && part.part < parts.back().part) ||
        std::any_of(part.senders.begin(), part.senders.end(),
                    [&](auto sender) { return sender >= members.size(); }))
      return false;
    if (!goes_on) boundaries.resize(part.part + 1, part.begin);
    // A stretch begins with a chunk.
    if (4 * (part.begin - boundaries.back()) % chunk_bytes != 0) return false;
    end = part.end;
    parts.push_back({part.begin, part.end, part.senders, 0, part.part});
  }
  if (end != values) return false;
  boundaries.resize(members.size() + 1, values);
  if (step.samples != samples_before + samples_of(step.parts, members)) return false;
  return version_of(boundaries, chunk_bytes, parts, step.gradient) == certificate.version;
}

// -- the donor's side -----------------------------------------------------------------------------

shared_object::shared_object(const model_state& state, std::uint64_t chunk_bytes)
    : head_(state.parameters), tail_(tail_of(state)) {
  offer_ = {state.id,
            state.epoch,
            state.id,
            state.step,
            state.bytes(),
            state.parameters.size(),
            state.samples,
            chunk_bytes,
            {},
            {},
            {}};
  hash_chunks();
}

shared_object::shared_object(const state_id& before, const taken_step& step,
                             std::uint64_t chunk_bytes)
    : head_(step.gradient) {
  offer_ = {step_object(before),
            step.epoch,
            step.after,
            0,
            step.gradient.size(),
            step.gradient.size(),
            step.samples,
            chunk_bytes,
            {},
            {},
            step.parts};
  hash_chunks();
}

void shared_object::hash_chunks() {
  const auto count = chunks_in(size(), offer_.chunk_bytes);
  if (head_.is_size_only()) {
    offer_.hashes = payload::size_only(count * hash_bytes);
    return;
  }
  std::vector<std::byte> list(count * hash_bytes);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto hash = short_hash_of(bytes(i * offer_.chunk_bytes, offer_.chunk_bytes).bytes());
    std::memcpy(list.data() + i * hash_bytes, hash.data(), hash_bytes);
  }
  offer_.hashes = payload{std::move(list)};
}

payload shared_object::bytes(std::uint64_t offset, std::uint64_t count) const {
  if (offset >= size()) return {};
  count = std::min(count, size() - offset);
  const auto end = offset + count;
  if (end <= head_.size()) return head_.slice(offset, count);
  if (offset >= head_.size()) return tail_.slice(offset - head_.size(), count);
  if (head_.is_size_only()) return payload::size_only(count);
  // This chunk spans the end of the parameters.
  std::vector<std::byte> out(count);
  const auto head = head_.slice(offset, head_.size() - offset);
  std::copy(head.bytes().begin(), head.bytes().end(), out.begin());
  const auto tail = tail_.slice(0, end - head_.size());
  std::copy(tail.bytes().begin(), tail.bytes().end(),
            out.begin() + static_cast<std::ptrdiff_t>(head.size()));
  return payload{std::move(out)};
}

// -- the joiner's side ----------------------------------------------------------------------------

state_download::state_download(id128 object, std::uint64_t parameter_bytes,
                               std::uint64_t optimizer_bytes, bool size_only,
                               std::uint64_t method_bytes)
    : object_(object), parameter_bytes_(parameter_bytes), optimizer_bytes_(optimizer_bytes),
      method_bytes_(method_bytes), size_only_(size_only) {}

bool state_download::sensible(const state_offer& offer, std::uint64_t most_bytes) const {
  const auto least = parameter_bytes_ + optimizer_bytes_;
  return offer.parameter_bytes == parameter_bytes_ &&
         (offer.size == least || offer.size == least + method_bytes_) && offer.size <= most_bytes &&
         offer.chunk_bytes > 0 && offer.chunk_bytes <= max_payload_bytes &&
         offer.hashes.size() == chunks_in(offer.size, offer.chunk_bytes) * hash_bytes &&
         (offer.hashes.empty() || offer.hashes.is_size_only() == size_only_) &&
         (object_.is_zero() || offer.object == object_) && offer.commits.size() <= most_commits &&
         offer.parts.size() <= most_step_parts && (root_.is_zero() || version(offer) == root_);
}

id128 state_download::version(const state_offer& offer) {
  hasher h;
  for (const auto* id : {&offer.object, &offer.state}) h.add(id->high).add(id->low);
  h.add(offer.epoch)
      .add(offer.step)
      .add(offer.size)
      .add(offer.parameter_bytes)
      .add(offer.samples)
      .add(offer.chunk_bytes);
  if (!offer.hashes.empty() && !offer.hashes.is_size_only()) h.add(offer.hashes.bytes());
  for (const auto& part : offer.parts) {
    h.add(part.part).add(part.begin).add(part.end).add(part.senders.size());
    for (const auto sender : part.senders) h.add(sender);
  }
  return id128::from(h.finish());
}

void state_download::begin(const state_offer& offer) {
  offer_ = offer;
  chosen_ = version(offer);
  begun_ = true;
  chunks_ = chunks_in(offer.size, offer.chunk_bytes);
  verified_ = 0;
  missing_.clear();
  for (std::uint64_t i = 0; i < chunks_; ++i) missing_.insert(i * offer.chunk_bytes);
  bytes_.clear();
  if (!size_only_) bytes_.resize(offer.size);
}

std::optional<std::uint64_t> state_download::take() {
  if (missing_.empty()) return std::nullopt;
  return missing_.extract(missing_.begin()).value();
}

std::uint64_t state_download::size_at(std::uint64_t offset) const {
  return std::min(offer_.chunk_bytes, offer_.size - offset);
}

bool state_download::add(std::uint64_t offset, const payload& data) {
  if (data.size() != size_at(offset) || data.is_size_only() != size_only_) return false;
  if (!size_only_) {
    const auto hash = short_hash_of(data.bytes());
    if (std::memcmp(hash.data(),
                    offer_.hashes.bytes().data() + offset / offer_.chunk_bytes * hash_bytes,
                    hash_bytes) != 0)
      return false;
    std::memcpy(bytes_.data() + offset, data.bytes().data(), data.size());
  }
  ++verified_;
  return true;
}

payload state_download::all() {
  SHOAL_CHECK(complete(), "an object is used when all of it is here");
  return size_only_ ? payload::size_only(offer_.size) : payload{std::move(bytes_)};
}

model_state state_download::state() {
  model_state out;
  out.epoch = offer_.epoch;
  out.id = offer_.state;
  out.step = offer_.step;
  out.samples = offer_.samples;
  const auto bytes = all();
  out.parameters = bytes.slice(0, offer_.parameter_bytes);
  out.optimizer = bytes.slice(offer_.parameter_bytes, optimizer_bytes_);
  const auto both = offer_.parameter_bytes + optimizer_bytes_;
  if (offer_.size > both) out.method_state = bytes.slice(both, offer_.size - both);
  return out;
}

taken_step state_download::step() {
  return {offer_.epoch, offer_.state, offer_.samples, all(), offer_.parts};
}

} // namespace shoal::actors
