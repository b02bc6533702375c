// Uses the installed library: pure arithmetic, and a connection that must fail well.
#include <iostream>
#include <string>

#include <pif/client/client.h>
#include <pif/parity/layout.h>

int main() {
  const auto layout = pif::parity::Layout::make(8, {4, 4});
  if (!layout) return 1;
  std::cout << "record 9 is on LFS " << layout->locate(9).lfs << "\n";
  pif::ConnectOptions options;
  options.where = "/nonexistent";
  const auto client = pif::Client::connect(options);
  if (client) return 1;
  std::cout << "no file system: " << pif::code_name(client.error().code) << "\n";
}
