// The record of a trainer of experts in the DHT, and what a swarm has learnt so far by all records.
// Trainers wait for nobody, so an epoch is a number of samples of the whole swarm:
//   epoch = samples of all trainers / target batch
// A trainer that dies takes its record away. The others still know its samples, and each record has
// the samples of the swarm as its writer knows them.
//
// Records are claims, and one false record must not end a run. A trainer knows how many samples the
// data shard has leased at least, and counts no more. A host without samples believes the median of
// the swarm counts. For a trainer, that median counts the samples of trainers that it never met.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/payload.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::actors {

/// The key of the trainers of a model.
std::string expert_trainers_key(std::string_view model);

struct expert_trainer_record {
  std::uint64_t own = 0;   ///< samples whose steps this trainer has made
  std::uint64_t swarm = 0; ///< samples of all trainers, as far as the trainer knows
  bool done = false;       ///< the trainer needs no expert any more
  payload pack() const;
  /// Empty for bytes that are no such record. Those of a trainer without samples are a record.
  static std::optional<expert_trainer_record> unpack(const payload& from);
  bool operator==(const expert_trainer_record&) const = default;
};

/// The samples that a swarm has used, by the records that a host has read. A plain state machine.
class swarm_samples {
public:
  /// The record of another trainer.
  void read(peer_id trainer, const expert_trainer_record& what);
  /// All records of one look-up have been read. After the first one, samples that a record knows
  /// and no trainer claims are those of trainers that have left.
  void read_all();
  /// The samples of the host's own trainer.
  void set_own(std::uint64_t samples) noexcept { own_ = samples; }
  /// The shard has leased samples up to this index to the host's own trainer.
  void leased(std::uint64_t end) noexcept { leased_ = std::max(leased_, end); }
  /// Never falls.
  std::uint64_t total() const noexcept;

private:
  std::map<peer_id, std::uint64_t> of_; // by trainer, dead ones too
  std::vector<std::uint64_t> said_;     // the swarm counts of the look-up that is being read
  std::uint64_t own_ = 0, known_ = 0, gone_ = 0;
  std::uint64_t leased_ = 0; // 0: the host has no trainer with samples
  bool first_ = true;
};

} // namespace shoal::actors
