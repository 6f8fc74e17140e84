#include "actors/training/progress.hpp"

#include <array>
#include <charconv>
#include <cstring>

namespace shoal::actors {

namespace {

using packed = std::array<std::uint64_t, 7>;

bool on(const progress& what, const branch& which) {
  return what.epoch == which.epoch && what.state == which.state;
}

}  // namespace

payload progress::pack() const {
  packed words{epoch, state.high, state.low, history, samples, millisamples_per_second, rate_up};
  std::vector<std::byte> bytes(sizeof words);
  std::memcpy(bytes.data(), words.data(), sizeof words);
  return payload{std::move(bytes)};
}

std::optional<progress> progress::unpack(const payload& bytes) {
  packed words;
  if (bytes.size() != sizeof words || bytes.is_hollow()) return std::nullopt;
  std::memcpy(words.data(), bytes.bytes().data(), sizeof words);
  return progress{words[0], {words[1], words[2]}, words[3], words[4], words[5], words[6]};
}

void progress_table::replace(const std::vector<record>& records, peer_id self) {
  entries_.clear();
  for (const auto& r : records) {
    peer_id id = 0;
    auto [end, error] = std::from_chars(r.subkey.data(), r.subkey.data() + r.subkey.size(), id, 16);
    if (error != std::errc{} || end != r.subkey.data() + r.subkey.size() || id == self || !r.address) continue;
    if (auto what = progress::unpack(r.value)) entries_.insert_or_assign(id, entry{*what, r.address});
  }
}

branch progress_table::leading(const branch& own) const {
  auto best = own;
  for (const auto& [peer, e] : entries_) {
    branch theirs{e.what.epoch, e.what.history, e.what.state};
    if (theirs.leads(best)) best = theirs;
  }
  return best;
}

std::uint64_t progress_table::samples_on(const branch& which) const {
  std::uint64_t sum = 0;
  for (const auto& [peer, e] : entries_)
    if (on(e.what, which)) sum += e.what.samples;
  return sum;
}

double progress_table::samples_per_second_on(const branch& which) const {
  double sum = 0;
  for (const auto& [peer, e] : entries_)
    if (on(e.what, which)) sum += static_cast<double>(e.what.millisamples_per_second) / 1000;
  return sum;
}

std::vector<peer_id> progress_table::peers_on(const branch& which) const {
  std::vector<peer_id> out;
  for (const auto& [peer, e] : entries_)
    if (on(e.what, which)) out.push_back(peer);
  return out;
}

}  // namespace shoal::actors
