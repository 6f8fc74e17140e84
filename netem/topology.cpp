#include "netem/topology.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shoal::netem {

namespace {

constexpr coordinates nowhere{std::numeric_limits<double>::quiet_NaN(), 0, 0};

} // namespace

void topology::route::add(link_id link) {
  const auto here = links();
  if (std::find(here.begin(), here.end(), link) == here.end()) links_[length_++] = link;
}

void topology::route::add(const route& rest) {
  for (const auto link : rest.links()) add(link);
}

// -- building -------------------------------------------------------------------------------------

region_index topology::add_region(std::string name) {
  regions_.push_back(std::move(name));
  between_.resize(regions_.size());
  for (auto& row : between_) row.resize(regions_.size());
  return static_cast<region_index>(regions_.size() - 1);
}

void topology::set_path(region_index a, region_index b, const path_quality& path) {
  between_[a][b] = between_[b][a] = path;
  for (std::size_t i = 0; i < places_.size(); ++i)
    for (std::size_t j = 0; j < places_.size(); ++j) ways_[i][j] = combine(places_[i], places_[j]);
}

site_index topology::add_site(std::string name, link_id uplink, link_id downlink,
                              site_index inside) {
  const auto depth = inside == no_site ? 0 : sites_[inside].depth + 1;
  SHOAL_CHECK(depth < 3, "sites nest at most three deep");
  const auto index = static_cast<site_index>(sites_.size());
  sites_.push_back({std::move(name), uplink, downlink, inside, depth});
  own(uplink, {link_owner::kind::uplink, true, index});
  own(downlink, {link_owner::kind::downlink, true, index});
  return index;
}

machine_index topology::add_machine(const machine_options& what, link_id uplink, link_id downlink,
                                    std::optional<link_id> processor) {
  const auto index = static_cast<machine_index>(machines_.size());
  const auto where = place_of({what.region, what.line, what.line});
  ++places_[where].users;
  machines_.push_back({what.name, where, what.up, what.down, what.up, uplink, downlink, processor,
                       what.site, what.nat});
  own(uplink, {link_owner::kind::uplink, false, index});
  own(downlink, {link_owner::kind::downlink, false, index});
  if (processor) own(*processor, {link_owner::kind::processor, false, index});
  if (what.at || has_coordinates()) {
    coordinates_.resize(index, nowhere);
    coordinates_.push_back(what.at.value_or(nowhere));
  }
  return index;
}

void topology::own(link_id link, const link_owner& owner) {
  const auto index = static_cast<std::size_t>(link);
  if (index >= link_owners_.size()) link_owners_.resize(index + 1);
  link_owners_[index] = owner;
}

void topology::set_name(machine_index index, const std::string& name) {
  if (machines_[index].name.empty()) machines_[index].name = name;
}

topology::place_index topology::use_line(machine_index index, const path_quality& out,
                                         const path_quality& in) {
  auto& m = machines_[index];
  --places_[m.place].users;
  m.place = place_of({places_[m.place].region, out, in});
  ++places_[m.place].users;
  return m.place;
}

/// Finds the place with this line, or reuses or adds one.
topology::place_index topology::place_of(const place& what) {
  const auto same = [&](const place& p) {
    return p.users > 0 && p.region == what.region && p.out == what.out && p.in == what.in;
  };
  const auto found = std::find_if(places_.rbegin(), places_.rend(), same);
  if (found != places_.rend()) return static_cast<place_index>(places_.rend() - found) - 1;
  auto free =
      std::find_if(places_.begin(), places_.end(), [](const place& p) { return p.users == 0; });
  if (free == places_.end()) {
    free = places_.insert(free, what);
    ways_.resize(places_.size());
    for (auto& row : ways_) row.resize(places_.size());
  }
  *free = what;
  free->users = 0;
  const auto index = static_cast<place_index>(free - places_.begin());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    ways_[i][index] = combine(places_[i], what);
    ways_[index][i] = combine(what, places_[i]);
  }
  return index;
}

topology::way topology::combine(const place& from, const place& to) const {
  way out;
  out.lines = from.out.delay + to.in.delay;
  out.quality = in_series({&between_[from.region][to.region], &from.out, &to.in});
  out.remembers = out.quality.correlation > 0 || out.quality.loss.bursts();
  return out;
}

// -- paths and routes ----------------------------------------------------------------------------

duration topology::delay(const location& from, const location& to) const {
  const auto& on = between(from.place, to.place);
  if (coordinates_.empty()) return on.quality.delay;
  if (from.machine >= coordinates_.size() || to.machine >= coordinates_.size())
    return on.quality.delay;
  const auto &at = coordinates_[from.machine], &there = coordinates_[to.machine];
  return std::isnan(at.x) || std::isnan(there.x) ? on.quality.delay
                                                 : on.lines + distance(at, there);
}

/// The route goes up from the sender to the innermost site that holds both machines, and then down
/// to the receiver.
topology::route topology::route_between(machine_index from, machine_index to) const {
  route out;
  out.add(machines_[from].uplink);
  if (const auto& copies = machines_[from].processor) out.add(*copies);
  site_index a = machines_[from].site, b = machines_[to].site;
  std::array<link_id, 4> down;
  std::size_t downs = 0;
  while (a != b) {
    const bool a_deeper = b == no_site || (a != no_site && sites_[a].depth >= sites_[b].depth);
    if (a_deeper) {
      out.add(sites_[a].uplink);
      a = sites_[a].inside;
    } else {
      down[downs++] = sites_[b].downlink;
      b = sites_[b].inside;
    }
  }
  while (downs > 0) out.add(down[--downs]);
  if (const auto& copies = machines_[to].processor) out.add(*copies);
  out.add(machines_[to].downlink);
  return out;
}

topology::route topology::route_through(machine_index from, machine_index relay,
                                        machine_index to) const {
  auto out = route_between(from, relay);
  out.add(route_between(relay, to));
  return out;
}

std::string topology::name_of(link_id link) const {
  const auto& owner = link_owners_[static_cast<std::size_t>(link)];
  const std::string of = owner.what == link_owner::kind::uplink     ? "uplink of "
                         : owner.what == link_owner::kind::downlink ? "downlink of "
                                                                    : "processor of ";
  return of + (owner.site ? sites_[owner.index].name : machines_[owner.index].name);
}

} // namespace shoal::netem
