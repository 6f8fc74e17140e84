// The open links of one host. A dialled link has both pipes from the start. The two pipes of an
// incoming link arrive as two half links, which join when both hellos have come.
#pragma once

#include "netem/wire/host_link.hpp"

#include <map>
#include <memory>
#include <vector>

namespace shoal::netem::wire {

/// Thread safety: none; the local host's lock guards it.
class link_list {
public:
  using link_ptr = std::shared_ptr<host_link>;

  void add(link_ptr fresh) { links_.push_back(std::move(fresh)); }
  /// The whole link that holds the pipes of `given`.
  link_ptr whole(const link_ptr& given) const;
  /// A hello came on an incoming half link. Returns the whole link once both halves have their
  /// hello, and null before.
  link_ptr hello_came(const link_ptr& of, int which, const hello& theirs);
  /// Removes the link. Returns null if it was closed before.
  link_ptr close(const link_ptr& given);
  /// Closes and removes all links.
  std::vector<link_ptr> close_all();

  const std::vector<link_ptr>& all() const noexcept { return links_; }
  std::vector<link_ptr>& all() noexcept { return links_; }
  std::vector<link_ptr> up() const;
  /// The links that the owner of this certificate has dialled and that are not up. Without keys the
  /// owner is not known, and the number is 0.
  std::size_t waiting_of(const certified_member& owner) const;
  std::vector<link_ptr> with(host_index host) const;
  /// The other links with the host of `of` that are up and were dialled by the same side, the
  /// oldest first. If `of` goes over a relay, these do so, too.
  std::vector<link_ptr> same_way(const host_link& of) const;
  /// The first link with `host` that is up; null if there is none.
  link_ptr up_with(host_index host) const;
  /// Links that go over the relay behind `relay`.
  std::vector<link_ptr> over_relay(const link_ptr& relay) const;
  /// The link with `other` over that relay; null if there is none.
  link_ptr over_relay(const link_ptr& relay, const node_key& other, std::uint64_t token) const;

private:
  std::vector<link_ptr> links_;
  /// Half links, each with the whole link that took its pipe.
  std::map<host_link*, link_ptr> joined_;
};

/// The open pipes of a link.
std::vector<std::shared_ptr<pipe>> pipes_of(const host_link& of);

} // namespace shoal::netem::wire
