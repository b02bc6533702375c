// The way all functions of the C interface work: check arguments, run, turn errors into negative codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <new>
#include <span>
#include <string>

#include "c_api/c_handles.h"

namespace pif::c_api {

inline int note(pif_errors& errors, const Error& error) {
  errors.code = static_cast<int>(error.code);
  errors.text = error.to_string();
  return -errors.code;
}

inline int note_thrown(pif_errors& errors, const std::exception& thrown) noexcept {
  errors.code = PIF_E_INTERNAL;
  try {
    errors.text = thrown.what();
  } catch (const std::bad_alloc&) {
    errors.text.clear();
  }
  return -PIF_E_INTERNAL;
}

inline std::span<std::byte> bytes_of(void* data, size_t size) { return {static_cast<std::byte*>(data), size}; }
inline std::span<const std::byte> bytes_of(const void* data, size_t size) {
  return {static_cast<const std::byte*>(data), size};
}

// An argument of a call, and whether it may be what it is.
struct Argument {
  Argument(const char* its_name, const void* pointer) : name(its_name), is_right(pointer != nullptr) {}
  // Memory of so many bytes or elements: without any, it may be NULL.
  Argument(const char* its_name, const void* pointer, uint64_t size)
      : name(its_name), is_right(pointer != nullptr || size == 0) {}
  template <typename... Parameters>
  Argument(const char* its_name, int (*function)(Parameters...)) : name(its_name), is_right(function != nullptr) {}
  const char* name;
  bool is_right;
};
using Arguments = std::initializer_list<Argument>;

inline Status check(Arguments arguments) {
  for (const Argument& argument : arguments) {
    if (!argument.is_right) return fail(Code::kInvalid, std::string("NULL was given for \"") + argument.name + '"');
  }
  return {};
}

inline int64_t value_of(const Status&) { return 0; }
template <typename T>
int64_t value_of(const Result<T>& result) {
  return static_cast<int64_t>(*result);
}

// Checks the arguments, then runs `call`: its value, or the negative code of what went wrong. Programs in C cannot
// catch what is thrown (by the library's containers, when memory is out or a size is absurd): it becomes an error here.
template <typename Call>
int64_t run(pif_errors& errors, Arguments arguments, Call call) noexcept {
  try {
    if (const Status checked = check(arguments); !checked) return note(errors, checked.error());
    const auto result = call();
    return result ? value_of(result) : note(errors, result.error());
  } catch (const std::exception& thrown) {
    return note_thrown(errors, thrown);
  }
}

// The same with the client of a connection.
template <typename Call>
int with_client(pif_connection* connection, Arguments arguments, Call call) noexcept {
  if (connection == nullptr) return -PIF_E_INVALID;
  return static_cast<int>(run(*connection->errors, arguments, [&]() -> Status {
    if (!connection->client) return fail(Code::kUnavailable, "not connected");
    return call(*connection->client);
  }));
}

// The same of a call that counts.
template <typename Call>
int64_t count_with_client(pif_connection* connection, Arguments arguments, Call call) noexcept {
  uint64_t count = 0;
  const int code = with_client(connection, arguments, [&](Client& client) -> Status {
    PIF_TRY_VALUE(count, call(client));
    return {};
  });
  return code == 0 ? static_cast<int64_t>(count) : code;
}

// The same with an open file.
template <typename Call>
int64_t with_file(pif_file* file, Arguments arguments, Call call) noexcept {
  if (file == nullptr) return -PIF_E_INVALID;
  return run(*file->errors, arguments, [&] { return call(file->file); });
}
template <typename Call>
int code_with_file(pif_file* file, Arguments arguments, Call call) noexcept {
  return static_cast<int>(with_file(file, arguments, call));
}

// A file that `open` gives, with a handle.
template <typename Open>
pif_file* make_file(pif_connection* connection, Arguments arguments, Open open) noexcept {
  pif_file* made = nullptr;
  with_client(connection, arguments, [&](Client& client) -> Status {
    PIF_TRY_VALUE(File file, open(client));
    made = new pif_file{connection->errors, connection->client, std::move(file)};
    return {};
  });
  return made;
}

}  // namespace pif::c_api
