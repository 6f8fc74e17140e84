#include "scenarios/schema/devices.hpp"

#include "scenarios/workloads/workload.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace shoal::scenarios {
namespace {

constexpr double tera = 1e12, giga = 1e9;

// Peaks and bandwidths are those of the makers: for accelerators dense matrix products of 16-bit
// numbers, summed in 32 bits; without such units, 32-bit numbers. The part of the peak that
// training reaches is the same for all but the H100. It predicts 94 and 182 images a second through
// ConvNeXt-L (206 Gflop forward and backward) on a T4 and an A10. The measured speeds are 80 and
// 185. Source: Erben et al., "How Can We Train Deep Learning Models Across Clouds and Continents?"
// (2023), for the measured speeds.
const std::array device_presets{
    // Four cores at 2.4 GHz with two AVX2 units each (32 operations a cycle); two DDR4-2400.
    device_preset{"laptop", 0.307 * tera, 38.4 * giga, 0.1},
    // Eight cores at 4 GHz of the same kind; two DDR4-3200.
    device_preset{"desktop", 1.02 * tera, 51.2 * giga, 0.05},
    // The usual accelerator of free notebooks is a T4; other users of the host disturb it.
    device_preset{"colab", 65 * tera, 320 * giga, 0.1},
    // NVIDIA T4 datasheet.
    device_preset{"t4", 65 * tera, 320 * giga, 0.03},
    // NVIDIA Tesla P100 for PCIe datasheet, 16 GB.
    device_preset{"p100", 18.7 * tera, 732 * giga, 0.03},
    // NVIDIA V100 datasheet, SXM2.
    device_preset{"v100", 125 * tera, 900 * giga, 0.03},
    // NVIDIA A10 datasheet.
    device_preset{"a10", 125 * tera, 600 * giga, 0.03},
    // NVIDIA A100 datasheet, 40 GB.
    device_preset{"a100", 312 * tera, 1555 * giga, 0.03},
    // NVIDIA H100 datasheet, SXM; half of the figure with sparsity. Plain PyTorch reached 0.12 to
    // 0.17 of the peak with three language models (results/devices.md).
    device_preset{"h100", 989 * tera, 3350 * giga, 0.03, 0.15},
    // NVIDIA GeForce GTX 1080 Ti: 3584 units at 1.58 GHz; no matrix units.
    device_preset{"gtx1080ti", 11.3 * tera, 484 * giga, 0.05},
    // NVIDIA Ampere GA102 whitepaper, table 2.
    device_preset{"rtx3090", 71 * tera, 936 * giga, 0.05},
    // NVIDIA Ada GPU architecture whitepaper, table 2.
    device_preset{"rtx4090", 165.2 * tera, 1008 * giga, 0.05},
};

/// Three digits are more than the presets know.
double rounded(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return std::round(value / unit) * unit;
}

} // namespace

const device_preset* find_device(std::string_view name) {
  const auto found = std::find_if(device_presets.begin(), device_presets.end(),
                                  [&](const device_preset& p) { return p.name == name; });
  return found == device_presets.end() ? nullptr : &*found;
}

device_class device_for(const device_preset& preset, const workload_choice& work) {
  const auto& definition = work.definition();
  device_class out;
  out.jitter = preset.jitter;
  if (!definition.possible(work)) return out; // reported where the model is checked
  double parameters = 0;
  for (const auto& slot : definition.tensors(work)) parameters += static_cast<double>(slot.size());
  const double flops = definition.sample_flops ? definition.sample_flops(work) : 6 * parameters;
  out.samples_per_second = std::clamp(rounded(preset.utilization * preset.peak / flops), 1e-6, 1e9);
  const auto step = static_cast<std::int64_t>(28 * parameters / preset.bandwidth * 1e6);
  out.step_time = std::chrono::microseconds(step);
  return out;
}

} // namespace shoal::scenarios
