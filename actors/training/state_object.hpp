// Objects that peers download from each other, in chunks and from several donors at once. Each
// chunk has its own hash, so that a wrong chunk and its sender are found out at once.
//     a state: parameters, optimizer state, and the method's state if there is one;
//         named by its state id
//     a step: the averaged gradient that led from one state to the next;
//         a peer with the first state makes the second one from it, bit by bit
// A state's list of hashes is certified. More than two thirds of the next round's members signed
// its root in their roster. A step's values and senders prove the version for which its round's
// members voted. Left out: a proof of the first of two rounds (PowerSGD).
#pragma once

#include "actors/averaging/round.hpp"
#include "actors/training/messages.hpp"
#include "actors/training/workload.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace shoal::actors {

/// A step in the form that other peers can repeat.
struct taken_step {
  std::uint64_t epoch = 0; ///< after the step
  state_id after;
  std::uint64_t samples = 0;      ///< in all steps, with this one
  payload gradient;               ///< the mean; floats, or size-only
  std::vector<step_part> parts{}; ///< the round's parts; empty if there were two rounds
};

/// The parts of a round's result.
std::vector<step_part> parts_of(const round_result& round);
/// The samples of a step: those of the senders of the part that has most.
std::uint64_t samples_of(const std::vector<step_part>& parts,
                         const std::vector<member_info>& members);
/// True if the step's values and senders are those that the certificate's votes are for. The second
/// of two rounds does not prove the first one's values, so they count as proven.
bool proves(const round_certificate& certificate, const taken_step& step,
            std::uint64_t samples_before);

/// The name of the step from `before`, on any branch.
id128 step_object(const state_id& before);

/// The limit on the parts of a step: a member has one, and each may lose some senders half-way.
inline constexpr std::size_t most_step_parts = 4096;

/// The limit on commits that a peer keeps until the shard has answered them. An offer has these
/// commits.
inline constexpr std::size_t most_commits = 64;

/// The size of one hash in a list.
inline constexpr std::uint64_t hash_bytes = 16;
constexpr std::uint64_t chunks_in(std::uint64_t size, std::uint64_t chunk_bytes) {
  return (size + chunk_bytes - 1) / chunk_bytes;
}

/// An object at its donor.
class shared_object {
public:
  /// Requires: chunk_bytes > 0.
  shared_object(const model_state& state, std::uint64_t chunk_bytes);
  shared_object(const state_id& before, const taken_step& step, std::uint64_t chunk_bytes);

  const state_offer& offer() const noexcept { return offer_; }
  std::uint64_t size() const noexcept { return offer_.size; }
  /// At most `count` bytes from `offset` on; empty if there are none.
  payload bytes(std::uint64_t offset, std::uint64_t count) const;

private:
  void hash_chunks();

  state_offer offer_;
  payload head_, tail_;
};

/// An object at its downloader. A plain state machine. It outlives the attempts to download it, so
/// verified chunks are never downloaded twice.
class state_download {
public:
  /// A zero `object` stands for the first state that is offered. Size-only objects have sizes only,
  /// and nothing to verify. A state has `method_bytes` bytes of method_state, or none.
  state_download(id128 object, std::uint64_t parameter_bytes, std::uint64_t optimizer_bytes,
                 bool size_only, std::uint64_t method_bytes = 0);

  const id128& object() const noexcept { return object_; }
  /// Only this version is the state: a certificate names it (certified_step::root).
  void expect(const id128& root) { root_ = root; }
  /// Only offers of this epoch are wanted: the records that name the state name this epoch, too.
  void expect_epoch(std::uint64_t epoch) { epoch_ = epoch; }
  /// Only objects that lead to this state are wanted, or to any if it is zero, and none that lead
  /// further than this epoch.
  void want(const state_id& state, std::uint64_t most_epoch) {
    wanted_ = state;
    most_epoch_ = most_epoch;
  }
  /// False if the object is of no use. A correct peer may offer it, if it is on another branch.
  bool wants(const state_offer& offer) const {
    return (wanted_.is_zero() || offer.state == wanted_) && offer.epoch <= most_epoch_ &&
           (!epoch_ || offer.epoch == *epoch_);
  }
  bool is_size_only() const noexcept { return size_only_; }

  /// True if a correct peer could send this offer.
  bool sensible(const state_offer& offer, std::uint64_t most_bytes) const;
  /// A name for the offered bytes: equal offers have equal names.
  static id128 version(const state_offer& offer);

  bool begun() const noexcept { return begun_; }
  /// Starts to download this version. Chunks of another version are dropped. Requires:
  /// sensible(offer).
  void begin(const state_offer& offer);
  // The following functions require begun().
  const state_offer& offer() const noexcept { return offer_; }
  const id128& chosen() const noexcept { return chosen_; }
  /// Takes the first missing chunk that is not asked for.
  std::optional<std::uint64_t> take();
  /// The chunk at `offset` will not arrive from its donor.
  void put_back(std::uint64_t offset) { missing_.insert(offset); }
  std::uint64_t size_at(std::uint64_t offset) const;
  /// False if `data` is not the chunk at `offset`. Requires: the chunk was taken.
  bool add(std::uint64_t offset, const payload& data);
  bool complete() const noexcept { return begun_ && verified_ == chunks_; }
  /// An upper bound of the bytes that are missing.
  std::uint64_t missing_bytes() const noexcept {
    return (chunks_ - verified_) * offer_.chunk_bytes;
  }

  /// Requires: complete(). Moves the bytes out.
  model_state state();
  taken_step step();

private:
  payload all();

  id128 object_, root_;
  state_id wanted_;
  std::uint64_t most_epoch_ = ~std::uint64_t{0};
  std::optional<std::uint64_t> epoch_;
  std::uint64_t parameter_bytes_, optimizer_bytes_, method_bytes_;
  bool size_only_;
  bool begun_ = false;
  state_offer offer_;
  id128 chosen_;
  std::set<std::uint64_t> missing_; // offsets that are not asked for
  std::uint64_t chunks_ = 0, verified_ = 0;
  std::vector<std::byte> bytes_;
};

} // namespace shoal::actors
