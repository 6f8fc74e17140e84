#include "scenarios/observe/run_observer.hpp"

#include <utility>

namespace shoal::scenarios {

namespace {

invariant_options with_names(const observer_options& from,
                             std::function<std::string(actors::peer_id)> name_of) {
  invariant_options out = from.invariants;
  out.name_of = std::move(name_of);
  out.view = from.view;
  return out;
}

} // namespace

run_books::run_books(observer_options with, const run_directory* files,
                     std::function<void(const swarm_round&)> on_final_round)
    : options(std::move(with)), directory(files), names(options.identify), history(names),
      checks(with_names(options, [this](actors::peer_id peer) { return name_of(peer); })),
      rounds(std::move(on_final_round), options.round_grace, options.view) {}

std::string run_books::name_of(actors::peer_id peer) const {
  if (!peers.contains(peer) && options.name_of_peer)
    if (auto name = options.name_of_peer(peer); !name.empty()) return name;
  return peers.name_of(peer);
}

result<std::unique_ptr<output_file>> open_table(const run_books& books, const char* name,
                                                const std::string& header) {
  if (books.directory == nullptr) return std::unique_ptr<output_file>();
  auto file = books.directory->open(name);
  if (file) (*file)->write(header);
  return file;
}

} // namespace shoal::scenarios
