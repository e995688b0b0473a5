//! Help of `myclaw update`.

pub(in crate::args) const UPDATE: &str = "\
Install another version of MyClaw, for copies that install.sh has installed. For copies of a package manager it says which \
command updates them.

The signature of the release is checked with the key of the installed version, then all that install.sh checks. The program \
is replaced as a whole, and the one before is kept. A gateway of this state directory that runs this copy is restarted as \
after SIGTERM: running turns get ten seconds, nothing is lost. If the new version is not ready within a minute, the one before \
is put back and started. `myclaw doctor` says what an update changed in the state directory.";

pub(in crate::args) const UPDATE_EXAMPLES: &str = "\
Examples:
  myclaw update --check                         is there a newer version?
  myclaw update                                 installs it
  myclaw update --from ~/Downloads/release-0.3.0
  myclaw update --to 0.3.0                      this version, and no other
  myclaw update --rollback                      back to the version before

Exit codes:
  0    it is installed, or there is no newer version
  1    it cannot be installed, or was not ready and the version before runs again
  2    this copy is not one of install.sh, or there is no such version";
