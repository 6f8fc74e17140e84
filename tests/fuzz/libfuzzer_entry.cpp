// Gives one target, SHOAL_FUZZ_TARGET, to libFuzzer.
#include "tests/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shoal::fuzz::SHOAL_FUZZ_TARGET(std::as_bytes(std::span(data, size)));
  return 0;
}
