// The speed of the machine under a file system: measured once, by pif-calibrate, and kept in the file system's folder,
// where tools find what their cost formulas need. It holds for the hardware and the programs that it was measured with;
// on others it is worth nothing, and is not used. Values; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "pif/base/result.h"
#include "pif/cluster/cluster.h"

namespace pif::tool {

// The hardware a calibration was measured on, as far as the machine where the tool runs can see.
struct Hardware {
  std::string processor;
  unsigned cores = 1;
  std::uint64_t memory_gib = 0;
  std::vector<std::string> lfss;  // name, and what is under its root, or its host
  std::string version;            // of the programs

  bool operator==(const Hardware&) const = default;
  // In words, what is not as it is in `other`; empty: nothing.
  std::string difference(const Hardware& other) const;
};
// The hardware of this machine, and the LFSs that the description names.
Hardware hardware_of(const cluster::Cluster& cluster);

// All are seconds. Work of threads is counted in seconds of one core: two cores do it in half the time.
struct Constants {
  // The machine. Disks: of a byte of one LFS, while all LFSs do the same; 1 and 8 requests under way.
  double memory_byte = 0, cached_read_byte = 0, cached_write_byte = 0;
  double disk_read_byte_1 = 0, disk_read_byte_8 = 0, disk_write_byte_1 = 0, disk_write_byte_8 = 0;
  double durable_byte = 0, sync = 0;
  double hop = 0, network_byte = 0;
  // A job without work.
  double connect = 0, create = 0, spawn = 0, start = 0, seal = 0, commit = 0;
  double remove_byte = 0;
  // Copies: of a byte.
  double copy_fixed = 0, copy_byte = 0, exchange_fixed = 0, exchange_byte = 0;
  double copy_durable_byte = 0;
  // Sorts.
  double sort_record = 0, sort_byte = 0, compare = 0, run_record = 0, run_byte = 0;
  double merge_fixed = 0, merge_record = 0, merge_byte = 0, merge_choice = 0, merge_run_record = 0;
  double pass_record = 0, pass_byte = 0, pass_disk_record = 0, pass_disk_byte = 0, pass_fixed = 0;
  double flow_fixed = 0, flow_record = 0, flow_byte = 0;
  double token_act = 0, token_key = 0, token_pass = 0, token_work = 0, block_work = 0;
  double figure_act = 0, figure_pass = 0, figure_work = 0;
  // Transposes: of a byte.
  double direct_fixed = 0, turn_byte = 0, weave_byte = 0, window_byte = 0;
  double load_byte = 0, parts_byte = 0, pass_half_byte = 0, band_fixed = 0, band_byte = 0, small_band_byte = 0;
};

struct ConstantEntry {
  const char* name;
  double Constants::*value;
  const char* meaning;
};
// All of them, in order. Valid for ever.
std::span<const ConstantEntry> constant_entries();

struct Calibration {
  Hardware hardware;
  std::string made;  // when, in UTC
  Constants constants;

  // As parse() reads it.
  std::string to_json() const;
  // kCorrupt: it is none, or lacks a constant, or one is no time.
  [[nodiscard]] static Result<Calibration> parse(const std::string& json);
};

// Where it is: FOLDER/calibration.json.
std::string calibration_path(const std::string& folder);
// Reads that of the file system in that folder. kNotFound: there is none; kCorrupt: it cannot be read; kVersion: it was
// measured on other hardware or with other programs. The text says which, and what to do.
[[nodiscard]] Result<Calibration> load_calibration(const std::string& folder);
// Replaces it in one step. Errors: the file system's.
[[nodiscard]] Status save_calibration(const std::string& folder, const Calibration& calibration);

}  // namespace pif::tool
