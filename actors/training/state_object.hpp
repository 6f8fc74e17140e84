// What peers share with each other besides gradients, in a form that can be fetched from several at
// once: an object of so many bytes in chunks, each with its hash, so that a chunk that is wrong is
// known by itself, and by whom it came.
//   a state   parameters, then optimizer state, then the method's state if it has one; named by its
//   state id a step    the averaged gradient that led from one state to the next; who has the first
//   and applies it has the second, bit by bit
// Left out: proof that a list of hashes is that of the state which it claims to be. Where donors
// differ, the majority is believed.
#pragma once

#include "actors/training/messages.hpp"
#include "actors/training/workload.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace shoal::actors {

/// A step as others can repeat it.
struct taken_step {
  std::uint64_t epoch = 0; ///< after it
  state_id after;
  std::uint64_t samples = 0; ///< in all steps, this one included
  payload gradient;          ///< the mean; floats, or hollow
};

/// The name of the step that was taken from `before`, on whatever branch whoever is asked is.
id128 step_object(const state_id& before);

/// Commits that a peer keeps until the shard has answered them, and that an offer has.
inline constexpr std::size_t most_commits = 64;

/// Bytes of one hash in a list.
inline constexpr std::uint64_t hash_bytes = 16;
constexpr std::uint64_t chunks_in(std::uint64_t size, std::uint64_t chunk_bytes) {
  return (size + chunk_bytes - 1) / chunk_bytes;
}

/// An object as its donor holds it.
class shared_object {
public:
  /// Requires: chunk_bytes > 0.
  shared_object(const model_state& state, std::uint64_t chunk_bytes);
  shared_object(const state_id& before, const taken_step& step, std::uint64_t chunk_bytes);

  const state_offer& offer() const noexcept { return offer_; }
  std::uint64_t size() const noexcept { return offer_.size; }
  /// At most `count` bytes from `offset`; empty if there are none.
  payload bytes(std::uint64_t offset, std::uint64_t count) const;

private:
  void hash_chunks();

  state_offer offer_;
  payload head_, tail_;
};

/// An object as it is fetched. A plain state machine; it outlives those who fetch it, so that what
/// was verified is never fetched again.
class state_download {
public:
  /// `object` zero: whatever state is offered first. Hollow objects have sizes only, and nothing to
  /// verify. A state may have `method_bytes` of method_state, or none.
  state_download(id128 object, std::uint64_t parameter_bytes, std::uint64_t optimizer_bytes,
                 bool hollow, std::uint64_t method_bytes = 0);

  const id128& object() const noexcept { return object_; }
  bool hollow() const noexcept { return hollow_; }

  /// Could a correct peer offer this?
  bool sensible(const state_offer& offer, std::uint64_t most_bytes) const;
  /// Two offers of the same bytes have the same name here.
  static id128 version(const state_offer& offer);

  bool begun() const noexcept { return begun_; }
  /// From now on this is what is downloaded; what was downloaded of another version is forgotten.
  /// Requires: sensible(offer).
  void begin(const state_offer& offer);
  // Requires of all below: begun().
  const state_offer& offer() const noexcept { return offer_; }
  const id128& chosen() const noexcept { return chosen_; }
  /// The first chunk that nobody was asked for.
  std::optional<std::uint64_t> take();
  /// Who was asked for it will not deliver it.
  void put_back(std::uint64_t offset) { missing_.insert(offset); }
  std::uint64_t size_at(std::uint64_t offset) const;
  /// False if these are not the bytes of the chunk at `offset`. Requires: it was taken.
  bool add(std::uint64_t offset, const payload& data);
  bool complete() const noexcept { return begun_ && verified_ == chunks_; }
  /// At most so many bytes are still to come.
  std::uint64_t missing_bytes() const noexcept {
    return (chunks_ - verified_) * offer_.chunk_bytes;
  }

  /// Requires: complete(). Takes the bytes out.
  model_state state();
  taken_step step();

private:
  payload all();

  id128 object_;
  std::uint64_t parameter_bytes_, optimizer_bytes_, method_bytes_;
  bool hollow_;
  bool begun_ = false;
  state_offer offer_;
  id128 chosen_;
  std::set<std::uint64_t> missing_; // offsets that nobody was asked for
  std::uint64_t chunks_ = 0, verified_ = 0;
  std::vector<std::byte> bytes_;
};

} // namespace shoal::actors
