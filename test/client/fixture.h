// A client of a simulated file system, and small words for its tests.
#pragma once

#include <functional>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "pif/client/client.h"
#include "pif/component/component.h"
#include "sim/cluster.h"
#include "sim/world.h"

namespace pif::test {

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(std::string_view text) {
  const auto all = std::as_bytes(std::span(text.data(), text.size()));
  return {all.begin(), all.end()};
}
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
// `size` bytes that tell their place, so that any mix-up shows.
inline Bytes pattern(std::size_t size, std::uint64_t seed = 1) {
  Bytes out(size);
  std::uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
  for (std::byte& b : out) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    b = static_cast<std::byte>(x >> 32);
  }
  return out;
}
inline std::span<const std::byte> part(const Bytes& bytes, std::size_t begin, std::size_t size) {
  return std::span(bytes).subspan(std::min(begin, bytes.size()),
                                  std::min(size, bytes.size() - std::min(begin, bytes.size())));
}

// The value, or the end of the test with the error's text (thrown, so that properties show it too).
template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  return std::move(*result);
}
// The same where it stays what it is.
template <typename T>
T& must_ref(Result<T>& result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  return *result;
}
inline void must(Status status) {
  if (!status) throw std::runtime_error(status.error().to_string());
}
template <typename T>
Code code_of(const Result<T>& result) {
  return result ? Code::kOk : result.error().code;
}

// A file system of `lfss` LFSs in a world of its own.
class FileSystem {
 public:
  explicit FileSystem(unsigned lfss, std::uint64_t seed = 1, sim::Options options = {})
      : world(seed, options), cluster(world, lfss) {}

  // An actor with a connected client. All LFSs are up when the body begins.
  void add_client(const std::string& name, DataPath path, std::function<void(Client&, sim::Actor&)> body) {
    world.spawn_main(
        name,
        [this, path, body = std::move(body)](sim::Actor& self) {
          sim::ClientSide side(self);
          ConnectOptions options;
          options.data_path = path;
          options.program = self.name();
          ClientWorld of_client = side.world();
          of_client.threads_max = threads_max;
          Client client = must(Client::connect_in(of_client, sim::Cluster::kServer, options));
          must(client.status(cluster.size()));
          body(client, self);
        },
        sim::Who{0, {0}});  // the owner of the root folder
  }
  // One client, to its end.
  void run(DataPath path, std::function<void(Client&)> body) {
    add_client("client", path, [body = std::move(body)](Client& client, sim::Actor&) { body(client); });
    world.run();
  }

  sim::World world;
  sim::Cluster cluster;
  unsigned threads_max = 1;  // of clients added from now on
};

// rc::check for properties that move real data in a whole system: fewer runs, since each costs a lot.
template <typename Property>
bool holds(Property property) {
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  params.maxSuccess = std::min(params.maxSuccess, 40);
  rc::detail::TestMetadata metadata;
  metadata.id = Catch::getResultCapture().getCurrentTestName();
  const auto result = rc::detail::checkTestable(std::move(property), metadata, params);
  const bool ok = result.template is<rc::detail::SuccessResult>();
  if (!ok) rc::detail::printResultMessage(result, std::cerr);
  return ok;
}

inline constexpr DataPath kBothPaths[] = {DataPath::kDescriptors, DataPath::kMessages};

// A committed file with these bytes.
inline void put(Client& client, const std::string& path, const CreateOptions& options,
                std::span<const std::byte> bytes) {
  File file = must(client.create(path, options));
  must(file.write(bytes));
  must(file.commit());
}
inline Bytes get(File& file) {
  const FileLength file_length = must(file.file_length());
  Bytes out(file_length.bytes);
  REQUIRE(must(file.pread(out, 0)) == out.size());
  return out;
}
inline Bytes get(Client& client, const std::string& path) {
  File file = must(client.open(path));
  return get(file);
}

}  // namespace pif::test
