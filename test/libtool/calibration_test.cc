// Calibrations, as they are kept; predictions; and reports that compare these with what was measured.
#include "pif/tool/calibration.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "pif/tool/report.h"

namespace pif::tool {
namespace {

// A new file system's folder, without daemons.
struct Folder {
  Folder() {
    char name[] = "/tmp/pif-calibration-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = std::string(name) + "/fs";
    REQUIRE(cluster::create_cluster(path, 3, 0, cluster::TcpMode::kNone));
  }
  ~Folder() { std::filesystem::remove_all(std::filesystem::path(path).parent_path()); }
  Calibration calibration() const {
    Calibration made;
    made.hardware = hardware_of(cluster::load_cluster(path).value());
    made.made = "2026-11-25T12:00:00Z";
    double value = 1e-9;
    for (const ConstantEntry& entry : constant_entries()) made.constants.*entry.value = value += 1e-9;
    return made;
  }
  void write(const std::string& text) const { std::ofstream(calibration_path(path)) << text; }
  Code code() const {
    const auto found = load_calibration(path);
    REQUIRE(!found);
    CHECK(found.error().text.find("pif calibrate") != std::string::npos);
    return found.error().code;
  }

  std::string path;
};

Duration seconds(double count) { return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(count)); }

const Report::Comparison& part_of(const std::vector<Report::Comparison>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.part == name; });
  REQUIRE(found != all.end());
  return *found;
}

}  // namespace

TEST_CASE("a calibration is found as it was kept") {
  const Folder folder;
  CHECK(folder.code() == Code::kNotFound);
  const Calibration made = folder.calibration();
  REQUIRE(save_calibration(folder.path, made));
  const auto found = load_calibration(folder.path);
  REQUIRE(found);
  CHECK(found->made == made.made);
  CHECK(found->hardware == made.hardware);
  CHECK(found->hardware.lfss.size() == 3);
  for (const ConstantEntry& entry : constant_entries())
    CHECK(found->constants.*entry.value == made.constants.*entry.value);
}

TEST_CASE("every constant has a name of its own, and all are kept") {
  CHECK(constant_entries().size() * sizeof(double) == sizeof(Constants));
  std::set<std::string> names;
  for (const ConstantEntry& entry : constant_entries()) CHECK(names.insert(entry.name).second);
}

TEST_CASE("what is damaged is no calibration") {
  const Folder folder;
  const auto whole = nlohmann::ordered_json::parse(folder.calibration().to_json());
  for (const char* const text : {"", "{", "[]", "{}", "null", "\xff"}) {
    folder.write(text);
    CHECK(folder.code() == Code::kCorrupt);
  }
  for (const nlohmann::json& value : {nlohmann::json(-1), nlohmann::json("1"), nlohmann::json(), nlohmann::json(1e9)}) {
    auto damaged = whole;
    damaged["seconds"]["hop"] = value;
    folder.write(damaged.dump());
    CHECK(folder.code() == Code::kCorrupt);
  }
  for (const auto& [part, name] : {std::pair("seconds", "hop"), std::pair("hardware", "cores")}) {
    auto lacking = whole;
    lacking[part].erase(name);
    folder.write(lacking.dump());
    CHECK(folder.code() == Code::kCorrupt);
  }
  auto other = whole;
  other["format"] = 2;
  folder.write(other.dump());
  CHECK(folder.code() == Code::kCorrupt);
  folder.write(whole.dump());
  CHECK(load_calibration(folder.path));
}

TEST_CASE("a calibration of other hardware, or other programs, is not used, and what differs is said") {
  const Folder folder;
  const auto refused = [&](auto change, const std::string& what) {
    Calibration made = folder.calibration();
    change(made.hardware);
    REQUIRE(save_calibration(folder.path, made));
    const auto found = load_calibration(folder.path);
    REQUIRE(!found);
    CHECK(found.error().code == Code::kVersion);
    CHECK(found.error().text.find(what) != std::string::npos);
  };
  refused([](Hardware& h) { h.processor = "an abacus"; }, "processor: an abacus there");
  refused([](Hardware& h) { ++h.cores; }, "cores");
  refused([](Hardware& h) { ++h.memory_gib; }, "memory");
  refused([](Hardware& h) { h.lfss.pop_back(); }, "LFSs");
  refused([](Hardware& h) { h.lfss[1] += "?"; }, "LFSs");
  refused([](Hardware& h) { h.version = "0.0.1"; }, "version: 0.0.1 there");
}

TEST_CASE("a job is what its workers do, and what is before and after it") {
  Constants c;
  c.connect = c.create = c.spawn = c.start = 1;
  c.seal = 2;
  c.commit = 3;
  c.durable_byte = 1e-6;
  Prediction work;
  work.add("sort", {{"sort_record", 10}, {"compare", 5}});
  work.add("merge", {{"merge_record", 4}});
  work.writing = 4;
  const Prediction all = around_work(c, {20'000'000}, work);
  CHECK(all.seconds() == Approx(4 + 19 + 2 + 16 + 3));  // of 20 s that the disk takes, the merge hides 4
  CHECK(all.find("seal")->seconds() == Approx(18));
  work.writing = 1000;
  CHECK(around_work(c, {20'000'000}, work).find("seal")->seconds() == Approx(2 + 8.388608));  // the last megabytes
  CHECK(around_work(c, {1'000'000}, work).find("seal")->seconds() == Approx(2 + 1));
  CHECK(all.find("sort")->largest() == "sort_record");
  CHECK(all.find("merge")->seconds() == Approx(4));
  CHECK(all.find(kStartPhase)->seconds() == Approx(1));
  CHECK(all.find("nothing") == nullptr);
  Prediction copy;
  copy.add(kWorkPhase, {{"copy_byte", 7}});
  const Prediction copied = around_work(c, {0}, copy);
  CHECK(copied.find(kWorkPhase)->seconds() == Approx(8));
  CHECK(copied.find(kStartPhase) == nullptr);
  CHECK(copied.find("seal")->seconds() == Approx(2));
  CHECK(longer({{"a", 1}, {"b", 1}}, {{"c", 1.5}}).size() == 2);
  CHECK(longer({{"a", 1}}, {{"c", 1.5}}).front().first == "c");
}

TEST_CASE("a report compares every phase, and names the term that is to blame") {
  Report report;
  report.phases = {{"connect", seconds(1)}, {"work", seconds(10)}, {"seal", seconds(1)}};
  report.parts = {{"sort", seconds(6)}, {"merge", seconds(3)}};
  CHECK(report.comparisons().size() == 2);
  CHECK(!report.comparisons()[0].predicted);
  Prediction prediction;
  prediction.add("connect", {{"connect", 1}});
  prediction.add("sort", {{"sort_record", 5.9}});
  prediction.add("merge", {{"merge_record", 0.5}, {"merge_byte", 1}});
  prediction.add(kStartPhase, {{"start", 0.9}});
  prediction.add("seal", {{"seal", 1.2}});
  report.prediction = prediction;
  const auto all = report.comparisons();
  CHECK(part_of(all, "connect").to_blame.empty());
  CHECK(part_of(all, "sort").to_blame.empty());
  CHECK(part_of(all, "merge").to_blame == "merge_byte");
  CHECK(*part_of(all, "merge").measured == Approx(3));
  CHECK(*part_of(all, kStartPhase).measured == Approx(1));
  CHECK(part_of(all, "seal").to_blame.empty());
  CHECK(*part_of(all, "total").measured == Approx(12));
  CHECK(part_of(all, "total").to_blame.empty());
  report.prediction->phases[1].terms[0].second = 30;
  CHECK(part_of(report.comparisons(), "total").to_blame == "sort: sort_record");
  const auto json = nlohmann::json::parse(report.to_json());
  CHECK(json["predictions"]["merge"]["to_blame"] == "merge_byte");
  CHECK(json["parts"]["merge"] == Approx(3));
  CHECK(report.to_text().find("to blame is merge_byte") != std::string::npos);
}

TEST_CASE("of a phase of a moment nothing is to blame") {
  Report report;
  report.phases = {{"seal", seconds(0.19)}};
  report.prediction.emplace();
  report.prediction->add("seal", {{"seal", 5}});
  CHECK(part_of(report.comparisons(), "seal").to_blame.empty());
  report.phases[0].second = seconds(0.21);
  CHECK(part_of(report.comparisons(), "seal").to_blame == "seal");
}

}  // namespace pif::tool
