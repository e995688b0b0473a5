class Myclaw < Formula
  desc "Personal AI agent in one binary"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

@ARCHIVES@

  def install
    bin.install "myclaw"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/myclaw.bash" => "myclaw"
    zsh_completion.install "completions/_myclaw"
    fish_completion.install "completions/myclaw.fish"
  end

  service do
    run [opt_bin/"myclaw", "gateway"]
    keep_alive crashed: true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/myclaw --version")
  end
end
