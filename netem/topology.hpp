// The machines and what lies between them: regions, sites, access lines, and the links of each
// route. Machines of one region with equal lines share a place. So the table of paths grows with
// pairs of places, and not of machines.
// Complexity: between() and delay() are O(1). A new place costs O(places), a changed path
// O(places^2).
// Thread safety: none.
#pragma once

#include "netem/machine_options.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shoal::netem {

class topology {
public:
  /// The most links of a route: two ways of at most ten links each.
  static constexpr std::uint32_t most_links = 20;

  /// A class of machines: those of one region with equal lines.
  using place_index = std::uint32_t;

  struct machine {
    std::string name;
    place_index place = 0;
    data_rate up, down; ///< the rates that the owner states
    data_rate up_now;
    link_id uplink{}, downlink{};
    std::optional<link_id> processor; ///< bulk in both directions passes through this link
    site_index site = no_site;
    nat_class nat = nat_class::open;
  };

  /// The conditions between two places, in one direction.
  struct way {
    path_quality quality;   ///< combines the lines and the regions
    duration lines{};       ///< the lines' part of the delay
    bool remembers = false; ///< a message's draw depends on the previous one's
  };

  /// The links from one machine to another, beginning with the sender's uplink. Each link is there
  /// once, though a relay's processor handles what it relays twice.
  class route {
  public:
    void add(link_id link);
    void add(const route& rest);
    std::span<const link_id> links() const noexcept { return {links_.data(), length_}; }

  private:
    std::array<link_id, most_links> links_;
    std::uint32_t length_ = 0;
  };

  /// Where a host is. A host keeps the place that its machine had at its start.
  struct location {
    machine_index machine = 0;
    place_index place = 0;
  };

  region_index add_region(std::string name);
  bool has_regions() const noexcept { return !regions_.empty(); }
  /// Sets the path between two regions, in both directions.
  void set_path(region_index a, region_index b, const path_quality& path);
  /// A site lies inside another site, or in none. Requires: sites nest at most three deep.
  site_index add_site(std::string name, link_id uplink, link_id downlink, site_index inside);
  machine_index add_machine(const machine_options& what, link_id uplink, link_id downlink,
                            std::optional<link_id> processor = std::nullopt);

  std::size_t machines() const noexcept { return machines_.size(); }
  const machine& operator[](machine_index index) const { return machines_[index]; }
  link_id uplink_of_site(site_index site) const { return sites_[site].uplink; }
  link_id downlink_of_site(site_index site) const { return sites_[site].downlink; }

  void set_rate_up(machine_index index, data_rate up) { machines_[index].up_now = up; }
  /// Names a machine that has no name yet.
  void set_name(machine_index index, const std::string& name);
  /// Sets the quality of the machine's line from now on, for both directions. Returns its
  /// new place.
  place_index use_line(machine_index index, const path_quality& out, const path_quality& in);

  const way& between(place_index from, place_index to) const { return ways_[from][to]; }
  /// The delay of one direction, without jitter.
  duration delay(const location& from, const location& to) const;
  bool has_coordinates() const noexcept { return !coordinates_.empty(); }
  route route_between(machine_index from, machine_index to) const;
  route route_through(machine_index from, machine_index relay, machine_index to) const;

  /// The name of a link, as in "uplink of home-3".
  std::string name_of(link_id link) const;

private:
  struct site {
    std::string name;
    link_id uplink, downlink;
    site_index inside;
    std::uint32_t depth;
  };
  struct place {
    region_index region;
    path_quality out, in;    // the line, for outgoing and for incoming messages
    std::uint32_t users = 0; // machines; a place without users is reused
  };
  struct link_owner {
    enum class kind : std::uint8_t { uplink, downlink, processor } what;
    bool site;           // else a machine
    std::uint32_t index; // the machine's or the site's
  };

  way combine(const place& from, const place& to) const;
  place_index place_of(const place& what);
  void own(link_id link, const link_owner& owner);

  std::vector<std::string> regions_;
  std::vector<std::vector<path_quality>> between_; // by region, twice
  std::vector<place> places_;
  std::vector<std::vector<way>> ways_; // by place, twice
  std::vector<site> sites_;
  std::vector<machine> machines_;
  // by machine; empty if none has any, NaN for machines without
  std::vector<coordinates> coordinates_;
  std::vector<link_owner> link_owners_; // by link
};

} // namespace shoal::netem
