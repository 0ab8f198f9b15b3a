// The panel that is pointed at is shown large.
for (const section of document.querySelectorAll("section")) {
  const large = section.querySelector(".large .picture img");
  const said = section.querySelector(".said");
  const panels = section.querySelectorAll(".panel");
  for (const panel of panels) {
    const show = () => {
      for (const other of panels) other.classList.toggle("on", other === panel);
      large.src = panel.querySelector("img").src;
      large.hidden = false;
      said.textContent = panel.querySelector(".word").textContent;
    };
    panel.addEventListener("pointerenter", show);
    panel.addEventListener("focus", show);
    panel.addEventListener("click", show);
  }
}
