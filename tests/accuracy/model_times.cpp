// The end of each flow of a pattern, as one of Shoal's models has it: model_times MODEL PATTERN [CONTROL]
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "tests/accuracy/pattern.hpp"

int main(int argc, char** argv) {
  using namespace shoal;
  if (argc < 3) {
    std::fprintf(stderr, "usage: model_times max_min|lv08|tcp PATTERN [reno|cubic]\n");
    return 2;
  }
  netem::tcp_options tcp;
  if (argc > 3 && std::strcmp(argv[3], "reno") == 0) tcp.control = netem::congestion_control::reno;
  for (int i = 4; i + 1 < argc; i += 2) {  // for calibration
    const std::string key = argv[i];
    const double value = std::atof(argv[i + 1]);
    if (key == "growth") tcp.slow_start_growth = value;
    if (key == "queue_ms") tcp.queue = from_seconds(value / 1000);
    if (key == "queue_packets") tcp.queue_packets = value;
    if (key == "max_window") tcp.max_window = value;
  }
  const std::string model = argv[1];
  std::ifstream in(argv[2]);
  if (!in) return std::perror(argv[2]), 1;
  try {
    const auto ends = accuracy::run_pattern(
        accuracy::read_pattern(in),
        model == "tcp" ? netem::transfer_model::tcp : model == "lv08" ? netem::transfer_model::lv08 : netem::transfer_model::max_min, tcp);
    for (std::size_t i = 0; i < ends.size(); ++i) std::printf("%zu %.6f\n", i, ends[i]);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s: %s\n", argv[2], problem.what());
    return 1;
  }
}
