#include "scenarios/export/export_formats.hpp"

namespace shoal::scenarios {

std::span<const export_format> export_formats() {
  static const export_format all[] = {perfetto_format(), tensorboard_format(), csv_format(),
                                      openmetrics_format(), pcapng_format()};
  return all;
}

} // namespace shoal::scenarios
