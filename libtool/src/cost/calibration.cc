#include "pif/tool/calibration.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pif/base/handle.h"
#include "pif/base/write_all.h"

namespace pif::tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kFormat = 1;
constexpr double kSecondsMax = 1e6;  // of anything that is measured here
constexpr std::size_t kBytesMax = 1u << 20;

using C = Constants;
constexpr auto kEntries = std::to_array<ConstantEntry>({
    {"memory_byte", &C::memory_byte, "a byte copied in memory, by one core"},
    {"cached_read_byte", &C::cached_read_byte, "a byte read from the page cache, by one core"},
    {"cached_write_byte", &C::cached_write_byte, "a byte written into the page cache, by one core"},
    {"disk_read_byte_1", &C::disk_read_byte_1, "a byte of one LFS read from disk, one request at a time"},
    {"disk_read_byte_8", &C::disk_read_byte_8, "the same, eight requests at a time"},
    {"disk_write_byte_1", &C::disk_write_byte_1, "a byte of one LFS written to disk, one request at a time"},
    {"disk_write_byte_8", &C::disk_write_byte_8, "the same, eight requests at a time"},
    {"durable_byte", &C::durable_byte, "a byte of one LFS written through the page cache and synced"},
    {"sync", &C::sync, "a few bytes made durable"},
    {"hop", &C::hop, "a word from one worker to the next"},
    {"network_byte", &C::network_byte, "a byte sent from one worker to another, in large messages"},
    {"connect", &C::connect, "a tool's start, until it is connected"},
    {"create", &C::create, "input opened and output created"},
    {"spawn", &C::spawn, "workers started"},
    {"start", &C::start, "workers' start and end, where they do nothing"},
    {"seal", &C::seal, "an empty output sealed"},
    {"commit", &C::commit, "an output committed"},
    {"remove_byte", &C::remove_byte, "a byte of a file removed"},
    {"copy_fixed", &C::copy_fixed, "a copy without records"},
    {"copy_byte", &C::copy_byte, "a byte copied on its own LFS"},
    {"copy_durable_byte", &C::copy_durable_byte, "the same made durable; nothing where it shares the source's blocks"},
    {"exchange_fixed", &C::exchange_fixed, "a copy without records to another layout"},
    {"exchange_byte", &C::exchange_byte, "a byte copied to another layout"},
    {"sort_record", &C::sort_record, "a record read, checked, its key made"},
    {"sort_byte", &C::sort_byte, "each byte of it"},
    {"compare", &C::compare, "a record, for each doubling of what is sorted"},
    {"run_record", &C::run_record, "a record put into a run in a scratch file"},
    {"run_byte", &C::run_byte, "each byte of it"},
    {"merge_fixed", &C::merge_fixed, "a merge without records"},
    {"merge_record", &C::merge_record, "a record merged into the output, by shares"},
    {"merge_byte", &C::merge_byte, "each byte of it"},
    {"merge_choice", &C::merge_choice, "a record, for each doubling of the runs that are merged"},
    {"merge_run_record", &C::merge_run_record, "the same where runs are in scratch files"},
    {"pass_record", &C::pass_record, "a record in one pass of token merges"},
    {"pass_byte", &C::pass_byte, "each byte of it"},
    {"pass_disk_record", &C::pass_disk_record, "the same where sub-files are in scratch files"},
    {"pass_disk_byte", &C::pass_disk_byte, "each byte of it there"},
    {"pass_fixed", &C::pass_fixed, "a pass without records"},
    {"flow_fixed", &C::flow_fixed, "all passes at once without records"},
    {"flow_record", &C::flow_record, "a record in one pass, where all are at once"},
    {"flow_byte", &C::flow_byte, "each byte of it"},
    {"token_act", &C::token_act, "a token that decides on one record of a block"},
    {"token_key", &C::token_key, "each record that it decides on"},
    {"token_pass", &C::token_pass, "a token's way to the next reader"},
    {"token_work", &C::token_work, "what a hop takes of the cores: messages, and a block of one record"},
    {"block_work", &C::block_work, "the same where blocks have many records, for several places"},
    {"figure_act", &C::figure_act, "figure 5.4: a token is received, tested and forwarded"},
    {"figure_pass", &C::figure_pass, "figure 5.4: a token's way to the next reader"},
    {"figure_work", &C::figure_work, "figure 5.4: what a hop takes of the cores"},
    {"direct_fixed", &C::direct_fixed, "direct transpose: of next to nothing"},
    {"turn_byte", &C::turn_byte, "direct transpose: a byte read and transposed"},
    {"weave_byte", &C::weave_byte, "direct transpose: a byte woven and written"},
    {"window_byte", &C::window_byte, "direct transpose: a byte of memory that pieces wait in, made and given back"},
    {"load_byte", &C::load_byte, "recursive transpose: a byte read into its scratch file"},
    {"parts_byte", &C::parts_byte, "recursive transpose: a byte of scratch files for passes, made"},
    {"pass_half_byte", &C::pass_half_byte, "recursive transpose: a byte split and joined in a pass"},
    {"band_fixed", &C::band_fixed, "recursive transpose: bands without rows"},
    {"band_byte", &C::band_byte, "recursive transpose: a byte of the only band sent, transposed and written"},
    {"small_band_byte", &C::small_band_byte, "the same of smaller bands, after passes"},
});

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail_errno(errno, fmt::format("cannot read {}", path));
  std::string text(kBytesMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

tl::unexpected<Error> damaged(std::string_view what) {
  return fail(Code::kCorrupt, fmt::format("it is no calibration: {}", what));
}

Json json_of(const Hardware& hardware) {
  return {{"processor", hardware.processor},
          {"cores", hardware.cores},
          {"memory_gib", hardware.memory_gib},
          {"lfss", hardware.lfss},
          {"version", hardware.version}};
}

}  // namespace

std::span<const ConstantEntry> constant_entries() { return kEntries; }

std::string Calibration::to_json() const {
  Json json = {{"format", kFormat}, {"made", made}, {"hardware", json_of(hardware)}};
  for (const ConstantEntry& entry : kEntries) json["seconds"][entry.name] = constants.*entry.value;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

Result<Calibration> Calibration::parse(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return damaged("not a JSON object");
  Calibration found;
  try {
    if (json.at("format") != kFormat) return damaged("of another format");
    found.made = json.at("made").get<std::string>();
    const Json& hardware = json.at("hardware");
    found.hardware = {hardware.at("processor").get<std::string>(), hardware.at("cores").get<unsigned>(),
                      hardware.at("memory_gib").get<std::uint64_t>(),
                      hardware.at("lfss").get<std::vector<std::string>>(), hardware.at("version").get<std::string>()};
    for (const ConstantEntry& entry : kEntries) {
      const double value = found.constants.*entry.value = json.at("seconds").at(entry.name).get<double>();
      if (!(value >= 0 && value <= kSecondsMax)) return damaged(fmt::format("{} is {} s", entry.name, value));
    }
  } catch (const Json::exception& error) {
    return damaged(error.what());
  }
  if (found.hardware.cores == 0) return damaged("no cores");
  return found;
}

std::string calibration_path(const std::string& folder) { return folder + "/calibration.json"; }

Result<Calibration> load_calibration(const std::string& folder) {
  constexpr const char* kDo = "run: pif calibrate";
  const std::string path = calibration_path(folder);
  auto text = read_file(path);
  if (!text) {
    if (text.error().code == Code::kNotFound)
      return fail(Code::kNotFound, fmt::format("this file system has no calibration: {}", kDo));
    return fail(std::move(text.error()));
  }
  auto found = Calibration::parse(*text);
  if (!found) return fail(Code::kCorrupt, fmt::format("{}: {}: {}", path, found.error().text, kDo));
  PIF_TRY_VALUE(const cluster::Cluster cluster, cluster::load_cluster(folder));
  const std::string difference = found->hardware.difference(hardware_of(cluster));
  if (!difference.empty())
    return fail(Code::kVersion, fmt::format("{} is of another machine ({}): {}", path, difference, kDo));
  return std::move(*found);
}

Status save_calibration(const std::string& folder, const Calibration& calibration) {
  const std::string path = calibration_path(folder), temporary = path + ".new";
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return fail_errno(errno, fmt::format("cannot write {}", temporary));
  const std::string text = calibration.to_json();
  Status written = write_all(fd.get(), std::as_bytes(std::span(text)), fmt::format("cannot write {}", temporary));
  if (written && ::fdatasync(fd.get()) != 0) written = fail_errno(errno, fmt::format("cannot sync {}", temporary));
  if (written && std::rename(temporary.c_str(), path.c_str()) != 0)
    written = fail_errno(errno, fmt::format("cannot replace {}", path));
  if (!written) (void)::unlink(temporary.c_str());
  return written;
}

}  // namespace pif::tool
