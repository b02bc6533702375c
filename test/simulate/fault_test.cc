// Each call of an LFS's disk and catalogue, and of the server's directory, fails: once, and then for good. Clients are
// told what failed and where, nothing hangs, and when the disk works again nothing is lost and all is whole.
#include <catch2/catch.hpp>

#include <algorithm>

#include "simulate/fault_history.h"

namespace pif::simulate {
namespace {

using Where = FaultSpec::Where;

constexpr std::uint64_t kCallsMax = 5000;

// Whether an error says where: by the daemon's name, or that of what is its.
bool names_its_place(const std::string& error) {
  const auto has = [&](const char* name) { return error.find(name) != std::string::npos; };
  return has("lfs0") || has("server") || has("file ");
}

// Whether it is of the failed call, and not one of what follows from it: that a file is not there, say.
bool is_of_the_disk(const std::string& error) {
  return error.ends_with("(io-error)") || error.ends_with("(no-space)") || error.ends_with("(corrupt)");
}

// Returns how many calls there were to fail.
std::uint64_t fail_each_call(FaultSpec wanted) {
  for (wanted.call = 0; wanted.call < kCallsMax; ++wanted.call) {
    const auto found = run_fault_history(wanted);
    INFO(wanted.to_string() << ": " << found.failed_call);
    for (const auto& violation : found.outcome.violations) FAIL(violation);
    if (!found.happened) return wanted.call;
    for (const auto& error : found.errors) {
      INFO(error);
      CHECK((!is_of_the_disk(error) || names_its_place(error)));
    }
  }
  FAIL("there is no end of calls");
  return 0;
}

void fail_all_calls(Where where, std::uint64_t calls_min) {
  for (const bool sticky : {false, true}) {
    CHECK(fail_each_call({where, sim::Fault::kIoError, 0, sticky}) >= calls_min);
    fail_each_call({where, sim::Fault::kNoSpace, 0, sticky});
    fail_each_call({where, sim::Fault::kShort, 0, sticky});
  }
}

}  // namespace

TEST_CASE("whichever call of an LFS fails, nothing is lost, and who asked is told what and where") {
  fail_all_calls(Where::kLfs, 150);
}

TEST_CASE("whichever call of the server's directory fails, nothing is lost, and who asked is told what and where") {
  fail_all_calls(Where::kServer, 80);
}

TEST_CASE("whichever call fails while an LFS recovers, it says so and ends or serves, and nothing is lost") {
  fail_all_calls(Where::kLfsStart, 150);
}

TEST_CASE("whichever call fails while the server starts, it says so and ends or serves, and nothing is lost") {
  fail_all_calls(Where::kServerStart, 80);
}

TEST_CASE("a failed call of a disk is told to the client that needed it") {
  FaultOutcome found;
  const auto is_of_log = [&] { return found.failed_call.starts_with("write /lfs0/log/redo."); };
  for (std::uint64_t call = 0; call < 100 && !is_of_log(); ++call)
    found = run_fault_history({Where::kLfs, sim::Fault::kIoError, call, false});
  REQUIRE(found.happened);
  REQUIRE(is_of_log());
  REQUIRE(!found.errors.empty());
  REQUIRE(found.errors[0] == "overwrite: lfs0: cannot " + found.failed_call + ": io-error (io-error)");
}

}  // namespace pif::simulate
