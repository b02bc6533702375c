// The C interface, used from C.
#include <csignal>
#include <thread>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../client/src/c_api/c_handles.h"
#include "../../client/src/file/file_state.h"
#include "c_calls.h"
#include "fixture.h"
#include "pif/base/assert.h"

using namespace pif;
using namespace pif::test;

namespace {

// Writes to a file that takes itself for one being created, which breaks an assertion.
int break_inside(pif_connection& connection) {
  CreateOptions options;
  options.format = Format::fixed(10);
  put(*connection.client, "/f", options, pattern(50));
  pif_file* file = pif_open(&connection, "/f", PIF_READ);
  REQUIRE(file != nullptr);
  file->file.state().phase = client::FileState::Phase::kCreating;
  const int code = pif_write(file, "0123456789", 10);
  file->file.state().phase = client::FileState::Phase::kOpen;
  pif_close(file);
  return code;
}

// What is written to standard error by a child in which an assertion breaks outside of all calls, which must end it.
std::string text_of_broken_child() {
  int ends[2] = {-1, -1};
  REQUIRE(::pipe(ends) == 0);
  const long child = ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);  // as in one_user_test.cc
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // not the test program's
    ::dup2(ends[1], STDERR_FILENO);
    std::thread([] { PIF_ASSERT(2 + 2 == 5); }).join();
    ::syscall(SYS_exit_group, 0);
  }
  REQUIRE(child > 0);
  ::close(ends[1]);
  std::string text;
  char some[256];
  for (ssize_t n = 0; (n = ::read(ends[0], some, sizeof some)) > 0;) text.append(some, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(static_cast<pid_t>(child), &status, 0) == child);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
  return text;
}

}  // namespace

TEST_CASE("a program in C reads, writes and names files") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      pif_connection connection;
      connection.client = std::make_unique<Client>(std::move(client));
      const char* wrong = c_calls(&connection);
      INFO((wrong != nullptr ? wrong : "") << ": " << pif_error_text(&connection));
      CHECK(wrong == nullptr);
    });
  }
}

TEST_CASE("a program in C moves whole files, and is told where they are") {
  FileSystem fs(3);
  fs.run(DataPath::kAuto, [](Client& client) {
    pif_connection connection;
    connection.client = std::make_unique<Client>(std::move(client));
    const char* wrong = c_whole(&connection);
    INFO((wrong != nullptr ? wrong : "") << ": " << pif_error_text(&connection));
    CHECK(wrong == nullptr);
  });
}

TEST_CASE("a program in C asks for many names and small files at once, for lines by number, and changes lengths") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    fs.run(path, [](Client& client) {
      pif_connection connection;
      connection.client = std::make_unique<Client>(std::move(client));
      const char* wrong = c_many(&connection);
      INFO((wrong != nullptr ? wrong : "") << ": " << pif_error_text(&connection));
      CHECK(wrong == nullptr);
    });
  }
}

TEST_CASE("NULL where a program in C must give something is an error, never an exception") {
  FileSystem fs(2);
  fs.run(DataPath::kAuto, [](Client& client) {
    pif_connection connection;
    connection.client = std::make_unique<Client>(std::move(client));
    const char* wrong = c_calls_with_null(&connection);
    INFO((wrong != nullptr ? wrong : "") << ": " << pif_error_text(&connection));
    CHECK(wrong == nullptr);
  });
}

TEST_CASE("a connection that could not be made says why, and every call on it too") {
  pif_connection* connection = pif_connect("/no/such/folder", nullptr);
  REQUIRE(connection != nullptr);
  CHECK(pif_error(connection) != PIF_OK);
  CHECK(std::string(pif_error_text(connection)).find("/no/such/folder") != std::string::npos);
  CHECK(pif_mkdir(connection, "/d", 0) == -PIF_E_UNAVAILABLE);
  CHECK(pif_open(connection, "/f", PIF_READ) == nullptr);
  pif_disconnect(connection);
}

TEST_CASE(
    "an assertion that breaks inside a call is the error internal, after which the connection does nothing more") {
  FileSystem fs(2);
  const AssertionHandler before = set_assertion_handler(nullptr);
  fs.run(DataPath::kAuto, [](Client& client) {
    pif_connection connection;
    connection.client = std::make_unique<Client>(std::move(client));
    CHECK(break_inside(connection) == -PIF_E_INTERNAL);
    CHECK(pif_error(&connection) == PIF_E_INTERNAL);
    const std::string text = pif_error_text(&connection);
    CHECK(text.find("access/src/component_access.cc:") != std::string::npos);
    CHECK(text.find(": assertion failed: parts_.creating") != std::string::npos);
    CHECK(pif_mkdir(&connection, "/e", 0) == -PIF_E_INTERNAL);
    CHECK(pif_open(&connection, "/f", PIF_READ) == nullptr);
    CHECK(pif_error_text(&connection) == text);
  });
  set_assertion_handler(before);
}

TEST_CASE("a program's own handler of broken assertions stays") {
  FileSystem fs(2);
  const AssertionHandler before = set_assertion_handler(
      [](const BrokenAssertion& broken) { throw std::runtime_error(broken.to_string() + ", said by the program"); });
  fs.run(DataPath::kAuto, [](Client& client) {
    pif_connection connection;
    connection.client = std::make_unique<Client>(std::move(client));
    CHECK(break_inside(connection) == -PIF_E_INTERNAL);
    CHECK(std::string(pif_error_text(&connection)).find(", said by the program") != std::string::npos);
  });
  set_assertion_handler(before);
}

TEST_CASE("an assertion that breaks on another thread than that of a call ends the process, with its text") {
  const AssertionHandler before = set_assertion_handler(nullptr);
  pif_disconnect(pif_connect("/no/such/folder", nullptr));  // a call: the library's handler is there
  CHECK(text_of_broken_child().find(": assertion failed: 2 + 2 == 5") != std::string::npos);
  set_assertion_handler(before);
}

TEST_CASE("programs in C move many pieces at once, as patterns, as Galley and PVFS have them, and share a file") {
  for (const DataPath path : kBothPaths) {
    FileSystem fs(3);
    c_shared shared{};
    bool has_shared = false, has_joined = false;
    const auto run = [](Client& client, const auto& calls) {
      pif_connection connection;
      connection.client = std::make_unique<Client>(std::move(client));
      const char* wrong = calls(&connection);
      INFO((wrong != nullptr ? wrong : "") << ": " << pif_error_text(&connection));
      CHECK(wrong == nullptr);
    };
    const auto wait_for = [](sim::Actor& self, const bool& sign) {
      for (int i = 0; i < 1000 && !sign; ++i) self.pause(std::chrono::milliseconds(10));
    };
    fs.add_client("creator", path, [&](Client& client, sim::Actor& self) {
      run(client, [&](pif_connection* connection) {
        const char* wrong = c_shares(connection, &shared);
        has_shared = true;
        if (wrong != nullptr) return wrong;
        wait_for(self, has_joined);
        return c_pieces(connection, &shared);
      });
    });
    fs.add_client("member", path, [&](Client& client, sim::Actor& self) {
      wait_for(self, has_shared);
      run(client, [&](pif_connection* connection) { return c_joins(connection, &shared); });
      has_joined = true;
    });
    fs.world.run();
  }
}
